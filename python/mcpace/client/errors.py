"""Exceptions of a client's requests, made of the compiled part's problems.

Design constraint: only this module knows the members of :class:`mcpace._core.CallProblem`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError

from mcpace import _core
from mcpace.server.errors import MCPError

__all__ = ["ClientError", "ListenNotSupportedError", "MCPError", "SubscriptionLost", "parse_result", "user_exception"]

ReadT = TypeVar("ReadT")


class ClientError(Exception):
    """A request failed for a reason other than an error answer of the server. ``code`` is for programs, the message for
    people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class RequestTimeout(ClientError, TimeoutError):
    """A request or a connection attempt took longer than its limit."""


class ServerUnreachable(ClientError, ConnectionError):
    """The server can't be reached, or has closed the connection."""


class ListenNotSupportedError(ClientError, RuntimeError):
    """``listen`` needs a server of 2026-07-28."""


class SubscriptionLost(ClientError, RuntimeError):
    """A subscription broke off without having been ended by the server: listen again, and fetch the resources anew."""


_CLASSES: dict[str, type[ClientError]] = {
    "time-limit": RequestTimeout,
    "connect": ServerUnreachable,
    "broke-off": ServerUnreachable,
    "process-ended": ServerUnreachable,
}


def user_exception(problem: _core.CallProblem | _core.UsageProblem) -> Exception:
    """The exception to raise instead of the compiled part's."""
    if isinstance(problem, _core.UsageProblem):
        return ValueError(str(problem))
    code, message, error = problem.args
    if error is None:
        return _CLASSES.get(code, ClientError)(code, message)
    number, words, data = error
    return MCPError(number, words, _data(data))


def parse_result(raw: bytes | str, read: Callable[[Any], ReadT]) -> ReadT:
    """Reads a server's result as a model. Raises :class:`ClientError` for a result that the model doesn't accept."""
    try:
        return read(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        words = f"the server's reply is not usable as {error.title}: {f'{place}: ' if place else ''}{first['msg']}"
        raise ClientError("bad-reply", words) from None


def _data(text: str | None) -> Any:
    return None if text is None else json.loads(text)
