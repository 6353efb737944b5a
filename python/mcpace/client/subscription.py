"""Subscriptions to the changes that a server of 2026-07-28 announces."""

from __future__ import annotations

from typing import Any

from mcpace import _core
from mcpace.client.errors import SubscriptionLost, user_exception
from mcpace.client.results import SubscriptionFilter
from mcpace.server.core.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

_LISTS: dict[str, ServerEvent] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


def event(told: str) -> ServerEvent | None:
    """The event for a text of the compiled part; ``None`` for one that has no class here."""
    kind, _, uri = told.partition(" ")
    return ResourceUpdated(uri) if kind == "resource" else _LISTS.get(kind)


class Subscription:
    """An open subscription: an asynchronous context, and an iterator of events."""

    def __init__(self, opening: Any) -> None:
        self._opening = opening
        self._listening: _core.Listening | None = None

    @property
    def subscription_id(self) -> int:
        """The id of the ``subscriptions/listen`` request."""
        return self._open.id

    @property
    def honored(self) -> SubscriptionFilter:
        """The changes that the server agreed to announce."""
        return SubscriptionFilter.model_validate_json(self._open.agreed)

    @property
    def _open(self) -> _core.Listening:
        if self._listening is None:
            raise RuntimeError("the subscription is not open: use it in 'async with'")
        return self._listening

    async def __aenter__(self) -> Subscription:
        try:
            self._listening = await self._opening()
        except _core.CallProblem as problem:
            raise user_exception(problem) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._listening is not None:
            await self._listening.close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> ServerEvent:
        while True:
            try:
                told = await self._open.next()
            except _core.CallProblem as problem:
                code, message, _ = problem.args
                raise SubscriptionLost(code, message) from None
            if told is None:
                raise StopAsyncIteration
            happened = event(told)
            if happened is not None:
                return happened
