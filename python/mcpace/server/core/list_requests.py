"""Requests for lists, if the server has middleware.

Without middleware the compiled part answers lists from bytes that it made at registration. With middleware, requests
for lists are answered here, so that middleware may shorten or change the lists.

Design constraint: a list is one page, since only the middleware knows how long it becomes. A request for a list cannot
ask the client questions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic_core import to_json

from mcpace.server.auth.principal import remember
from mcpace.server.calls.context import Context
from mcpace.server.core.exchange_loop import ExchangeLoop, Refusal
from mcpace.server.core.local_calls import visible_entries
from mcpace.server.core.requests import run_middleware
from mcpace.server.errors import MCPError, is_protocol_error, logger
from mcpace.server.registration.resources import listed_resource
from mcpace.types import INTERNAL_ERROR, INVALID_REQUEST, MODERN

if TYPE_CHECKING:
    from mcpace._core import Exchange
    from mcpace.server.auth.guards import Kind
    from mcpace.server.core.core_binding import CoreBinding
    from mcpace.server.core.registry import Registry


@dataclass(frozen=True, slots=True)
class _List:
    """One kind of list: the result's member, its entries, and how each entry is written."""

    member: str
    kind: Kind
    entries: Callable[[Registry], Mapping[str, Any]]
    listed: Callable[[Any], dict[str, Any]]


_LISTS = {
    "tools/list": _List("tools", "tool", lambda registry: registry.tools, lambda one: one.listed()),
    "resources/list": _List("resources", "resource", lambda registry: registry.resources, listed_resource),
    "resources/templates/list": _List(
        "resourceTemplates", "template", lambda registry: registry.templates, lambda one: one.listed()
    ),
    "prompts/list": _List("prompts", "prompt", lambda registry: registry.prompts, lambda one: one.listed()),
}
METHODS = list(_LISTS)
# Members that a revision does not know are left out, because models read lists into their context.
_SINCE = {"annotations": "2025-03-26", "title": "2025-06-18", "outputSchema": "2025-06-18", "icons": "2025-11-25"}


def list_loop(binding: CoreBinding) -> ExchangeLoop:
    """The loop that answers a server's requests for lists, still closed."""

    async def answer(exchange: Exchange) -> bytes:
        remember(exchange.token)
        context: Context[Any, Any] = Context(call=_Listing(exchange), server=binding.server, method=exchange.method)
        try:
            result = await run_middleware(binding, context)
            return _with_cache_hints(binding, exchange.revision, result, _cache_scope(binding, exchange.method))
        except Exception as error:
            if is_protocol_error(error):
                raise Refusal(error.error.code, error.error.message, error.error.data) from error  # type: ignore[attr-defined]
            logger.error("%s raised an unexpected exception", exchange.method, exc_info=error)
            raise Refusal(INTERNAL_ERROR, "Internal server error") from error

    return ExchangeLoop(answer)


async def listed(
    binding: CoreBinding, method: str, revision: str, principal: Any, exchange: Exchange | None = None
) -> dict[str, Any]:
    """The list that a caller may see, in wire names; ``exchange`` is the request for it, if there is one."""
    listing = _LISTS[method]
    entries = await visible_entries(binding, listing.kind, dict(listing.entries(binding.registry)), principal, exchange)
    return {listing.member: [_entry_for_revision(listing.listed(entry), revision) for entry in entries]}


def exchange_of(call: object) -> Exchange | None:
    """The request for a list that a call answers; ``None`` for other calls."""
    return call.exchange if isinstance(call, _Listing) else None


def _entry_for_revision(entry: Mapping[str, Any], revision: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if revision >= _SINCE.get(key, "")}


def _cache_scope(binding: CoreBinding, method: str) -> str:
    """The cache scope of a list: private if callers see different entries."""
    entries = _LISTS[method].entries(binding.registry).values()
    differs = any(binding.guards_of(entry).permissions for entry in entries)
    return "private" if differs else binding.cache.scope


def _with_cache_hints(binding: CoreBinding, revision: str, result: bytes, scope: str) -> bytes:
    if revision < MODERN:
        return result
    members: dict[str, Any] = json.loads(result)
    info = {"name": binding.server.name, "version": binding.server.version or ""}
    hints = {"resultType": "complete", "ttlMs": binding.cache.ttl_ms, "cacheScope": scope}
    members["_meta"] = {**members.get("_meta", {}), "io.modelcontextprotocol/serverInfo": info}
    return to_json({**hints, **members})


class _Listing:
    """A request for a list, as a :class:`mcpace.server.calls.context.Call`."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.request_id = exchange.id
        self.revision = exchange.revision
        self.params = exchange.params
        self.principal = exchange.token
        self.session_id: str | None = None
        self.client_info: bytes | None = self._of_meta("clientInfo")
        self.client_capabilities: bytes | None = self._of_meta("clientCapabilities")
        self.input_responses: bytes | None = None
        self.request_state: str | None = None
        self.task_id: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers by lower-case name."""
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self.exchange.headers or ()}

    @property
    def meta(self) -> bytes | None:
        """The request's metadata."""
        found = (json.loads(self.params) if self.params else {}).get("_meta")
        return None if found is None else to_json(found)

    def is_cancelled(self) -> bool:
        """Whether the client no longer waits."""
        return self.exchange.is_cancelled

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """A list has no progress."""

    def log(self, level: str, logger: str | None, data: bytes) -> None:
        """A log message."""
        params = {"level": level, "logger": logger, "data": json.loads(data)}
        told = {key: value for key, value in params.items() if value is not None}
        self.exchange.notify("notifications/message", json.dumps(told))

    def release(self) -> None:
        """A list is answered at once."""

    def elicitation_complete(self, elicitation_id: str) -> None:
        """Not from here."""

    def elicit(self, params: bytes) -> NoReturn:
        """Not from here."""
        raise MCPError(INVALID_REQUEST, "a request for a list is no place to ask the client something")

    sample = elicit

    def list_roots(self) -> NoReturn:
        """Not from here."""
        self.elicit(b"")

    def begin_task(self) -> NoReturn:
        """Not from here."""
        raise MCPError(INVALID_REQUEST, "a request for a list becomes no task")

    def _of_meta(self, name: str) -> bytes | None:
        found = json.loads(self.meta or b"{}").get(f"io.modelcontextprotocol/{name}")
        return None if found is None else to_json(found)
