"""Calls within the process on somebody's behalf: what a client would meet, without one.

Permissions and rate limits are the compiled part's, and count with those of clients. What was validated is what a
client would have sent, what comes back is what it would have read. The function itself runs where it was called for: a
plain one that is waited for on this very thread, so that what the thread holds (a transaction, say) is the function's.

Design constraint: runs the same plans as the compiled part. Nobody can be asked anything: there is no client.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pydantic_core import PydanticSerializationError, to_json

from mcpace.server.auth.principal import checked, remember
from mcpace.server.calls.content import failure_json, text_json
from mcpace.server.calls.invocation import call_function
from mcpace.server.core.handlers import Answer, Plan
from mcpace.server.errors import MCPError
from mcpace.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    MODERN,
    wire,
)

if TYPE_CHECKING:
    from mcpace import _core
    from mcpace.server.app import MCPServer
    from mcpace.server.auth.guards import Guards, Kind
    from mcpace.server.registration.tools import Tool

ValueT = TypeVar("ValueT")


class ToolCall:
    """One call of a tool on a principal's behalf: waited for on this thread, or awaited."""

    def __init__(self, server: MCPServer[Any], name: str, arguments: Mapping[str, Any] | None, principal: Any) -> None:
        tool: Tool | None = server.registry.tools.get(name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name}")
        self._server = server
        self._name = name
        self._arguments = _arguments(arguments)
        self._principal = checked(principal)
        self._guards = server._inside.guards_of(tool)
        self._limit = self._guards.timeout or server.tool_timeout
        self._plan = server.registry.plan_of(tool)

    async def awaited(self) -> bytes:
        """The result, as JSON. Raises ``MCPError`` where a client would get a protocol error."""
        await admitted(self._server, "tool", self._name, self._principal, self._guards)
        # A task of its own, for its context variables are its own.
        try:
            async with asyncio.timeout(self._limit) as limit:
                value = await asyncio.create_task(self._run(), context=contextvars.copy_context())
        except TimeoutError:
            if not limit.expired():
                raise
            return self._overdue()
        return value

    def waited(self) -> bytes:
        """The same, without an event loop. A plain function runs on this thread, where nothing can end it in time."""
        if self._plan.kind == "async":
            return _run_to_end(self.awaited(), self._name)
        admitted_here(self._server, "tool", self._name, self._principal, self._guards)
        return contextvars.copy_context().run(self._run_here)

    async def _run(self) -> bytes:
        try:
            value = await call_function(self._plan.function, self._plan.kind == "async", self._keywords())
            return self._bounded(_written(self._plan, value))
        except Exception as error:
            return self._failed(error)

    def _run_here(self) -> bytes:
        try:
            return self._bounded(_written(self._plan, self._plan.function(**self._keywords())))
        except Exception as error:
            return self._failed(error)

    def _keywords(self) -> dict[str, Any]:
        plan = self._plan
        keywords = {} if plan.validate is None else plan.validate(self._arguments)
        if plan.wrap_context is not None:
            context = plan.wrap_context(_Call(self._name, self._arguments, self._principal))
            if plan.context is not None:
                keywords[plan.context] = context
        remember(self._principal)
        return keywords

    def _failed(self, error: Exception) -> bytes:
        answer: Answer = self._plan.fail(error)
        if isinstance(answer, tuple):
            code, message, data = answer
            raise MCPError(code, message, None if data is None else json.loads(data)) from error
        return answer

    def _bounded(self, result: bytes) -> bytes:
        words = too_long(len(result) - _ENVELOPE, self._guards)
        return result if words is None else failure_json(words)

    def _overdue(self) -> bytes:
        return failure_json(overdue(self._limit))


_ENVELOPE = len(b'{,"isError":false}')
"""What of a result isn't counted: the compiled part writes it after the rest."""


def too_long(length: int, guards: Guards) -> str | None:
    """What is said of a result over its bound."""
    most = guards.max_result_bytes
    if most is None or length <= most:
        return None
    return f"the result is too long: {length} bytes of JSON, and no more than {most} are sent; ask for less"


def overdue(limit: float | None) -> str:
    """What is said of a function that took too long."""
    return f"timed out after {limit or 0:g} seconds"


def needs_admission(guards: Guards) -> bool:
    """Whether anybody has to be asked before a use."""
    return bool(guards.permissions or guards.rate_limits)


async def admitted(
    server: MCPServer[Any], kind: Kind, name: str, principal: Any, guards: Guards, uri: str | None = None
) -> None:
    """Takes what a client's request would take. Raises ``MCPError`` where it would be refused."""
    if needs_admission(guards):
        from mcpace import _core

        _check(await _core.admit(_believing(server), kind, name, checked(principal), uri=uri))


def admitted_here(server: MCPServer[Any], kind: Kind, name: str, principal: Any, guards: Guards) -> None:
    """The same, waited for on this thread."""
    if needs_admission(guards):
        from mcpace import _core

        _check(_core.admit(_believing(server), kind, name, checked(principal)).wait())


async def shown(
    server: MCPServer[Any], kind: Kind, entries: Mapping[str, ValueT], principal: Any, exchange: Any = None
) -> list[ValueT]:
    """The entries that a list would show, in their order, to a caller within the process or to who sent ``exchange``.
    It counts as no use."""
    guarded = [name for name, entry in entries.items() if server._inside.guards_of(entry).permissions]
    if not guarded:
        return list(entries.values())
    from mcpace import _core

    believing = _believing(server)
    if exchange is not None:
        answers = _core.may_see(believing, kind, guarded, exchange=exchange)
    else:
        answers = _core.may_see(believing, kind, guarded, checked(principal))
    hidden = {name for name, seen in zip(guarded, await answers, strict=True) if not seen}
    return [entry for name, entry in entries.items() if name not in hidden]


async def bounded(guards: Guards, work: Awaitable[ValueT], length: Callable[[ValueT], int]) -> ValueT:
    """A value that isn't a tool's, within its time and its length. Raises ``MCPError`` where it takes more."""
    try:
        async with asyncio.timeout(guards.timeout) as limit:
            value = await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise MCPError(INTERNAL_ERROR, overdue(guards.timeout)) from None
    words = None if guards.max_result_bytes is None else too_long(length(value), guards)
    if words is not None:
        raise MCPError(INTERNAL_ERROR, words)
    return value


def _believing(server: MCPServer[Any]) -> _core.Server:
    """The compiled part of a server whose callers within the process are believed."""
    server._inside.believes = True
    return server._inside.core


def _check(refusal: str | None) -> None:
    """Raises the error of the reply that refuses."""
    if refusal is not None:
        error = json.loads(refusal)["error"]
        raise MCPError(error["code"], error["message"], error.get("data"))


def _arguments(arguments: Any) -> bytes:
    """As a client would send them."""
    if arguments is not None and not isinstance(arguments, Mapping):
        raise TypeError(f"arguments are an object, by names, not {type(arguments).__name__}")
    try:
        return to_json(arguments or {}, fallback=_model)
    except PydanticSerializationError as error:
        raise TypeError(f"arguments have to be what JSON can carry: {error}") from None


def _model(value: Any) -> Any:
    plain = wire(value)
    if plain is value:
        raise TypeError(f"{type(value).__name__} is not")
    return plain


def _written(plan: Plan, value: Any) -> bytes:
    """A returned value as a whole result, by what the compiled part is told of it."""
    if plan.output == "finished":
        finished: bytes = value
        return finished
    if plan.output in ("text", "wrapped-text") and isinstance(value, str):
        if plan.output == "text":
            return b'{"content":' + text_json(value) + b',"isError":false}'
        text = to_json(value)
        head = b'{"content":[{"type":"text","text":' + text + b'}],"structuredContent":{"result":'
        return head + text + b'},"isError":false}'
    written: Any = value if plan.finish is None else plan.finish(value)
    if isinstance(written, tuple):
        data: bytes = written[0]
        text = to_json(json.loads(data), indent=2) if written[1] is True else written[1]
        return b'{"content":' + text_json(text.decode()) + b',"structuredContent":' + data + b',"isError":false}'
    if plan.finish is None:
        raise TypeError(f"returned {type(value).__name__}, not str")
    whole: bytes = written
    return whole


def _run_to_end(work: Awaitable[bytes], name: str) -> bytes:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_awaited(work))
    work.close()  # type: ignore[attr-defined]
    raise RuntimeError(f"tool {name!r} needs an event loop, and this thread runs one: await acall_tool(…) instead")


async def _awaited(work: Awaitable[bytes]) -> bytes:
    return await work


class _Call:
    """What a function may know of a call that nobody sent: a :class:`mcpace.server.calls.context.Call`."""

    request_id = "in-process"
    revision = MODERN
    session_id: str | None = None
    client_info: bytes | None = None
    client_capabilities: bytes | None = None
    meta: bytes | None = None
    input_responses: bytes | None = None
    request_state: str | None = None
    task_id: str | None = None

    def __init__(self, name: str, arguments: bytes, principal: Any) -> None:
        self._name = name
        self._arguments = arguments
        self.principal = principal
        self.headers: dict[str, str] = {}

    @property
    def params(self) -> bytes:
        return b'{"name":' + to_json(self._name) + b',"arguments":' + self._arguments + b"}"

    def is_cancelled(self) -> bool:
        return False

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Nobody hears of it."""

    def log(self, level: str, logger: str | None, data: bytes) -> None:
        """Nobody hears of it."""

    def release(self) -> None:
        """There is no connection."""

    def elicitation_complete(self, elicitation_id: str) -> None:
        """Nobody was asked."""

    def elicit(self, params: bytes) -> NoReturn:
        raise MCPError(INVALID_REQUEST, "a call within the process has no client that could be asked")

    sample = elicit

    def list_roots(self) -> NoReturn:
        self.elicit(b"")

    def begin_task(self) -> NoReturn:
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY, "a call within the process is answered with its result, not with a task"
        )
