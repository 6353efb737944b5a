"""The driver of a client program: one provider, one connection, four timed operations.

The driver of each SDK adds only how a session is opened and called. Drivers use an SDK's ordinary public API as in its
own quickstart, and detect the features of a release instead of comparing version numbers.

Timing: `perf_counter_ns` is read immediately before and after the SDK calls. All other work (queues, summaries,
building the request's parameters) is outside.

One task enters and leaves all contexts of a connection, because anyio's cancel scopes must be left in the task that
entered them.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

import anyio

from wallet import Wallet

TEXT_LIMIT = 200
NAMES_LIMIT = 200
# Time limit for closing a connection without a command that has a limit of its own.
ABANDON_LIMIT_S = 2.0

Hear = Callable[..., Awaitable[None]]
"""Takes one notification of progress."""
SessionOpener = Callable[[], Any]
"""Returns an async context manager that yields (session, summary of the server)."""


@dataclass
class Failure:
    kind: str
    """One of unsupported, timeout, auth, connection, protocol and other."""
    message: str


@dataclass
class Outcome:
    start_ns: int
    end_ns: int
    result: dict[str, Any] = field(default_factory=dict)
    error: Failure | None = None


class Unsupported(Exception):
    """This release has no API for the request."""


class Driver(ABC):
    """The commands of the contract."""

    def __init__(self, package: str, wallet: Wallet) -> None:
        self.version = importlib.metadata.version(package)
        self.wallet = wallet
        self._connection: Connection | None = None
        self.operations = {
            "provider": self.provider,
            "connect": self.connect,
            "list_tools": self.list_tools,
            "call_tool": self.call_tool,
            "disconnect": self.disconnect,
        }

    @abstractmethod
    def session_opener(self, command: dict[str, Any]) -> SessionOpener:
        """Chooses how to open a session. It may build a provider, so it runs before the clock starts."""

    def authorization(self, command: dict[str, Any]) -> tuple[str | None, Any]:
        """A bearer token, a provider, or neither, as the command requests."""
        auth = command.get("auth") or {"kind": "none"}
        match auth["kind"]:
            case "none":
                return None, None
            case "bearer":
                return auth["token"], None
            case "oauth":
                return None, self.wallet.provider(command["url"], auth)
            case kind:
                raise Unsupported(f"unknown kind of authorization: {kind!r}")

    async def list_session(self, session: Any) -> Any:
        """Requests one page of tools."""
        return await session.list_tools()

    async def call_with_progress(self, session: Any, name: str, arguments: dict[str, Any], hear: Hear) -> Any:
        """Calls a tool and asks for its progress."""
        raise Unsupported("this adapter asks for no progress")

    async def call_session(self, session: Any, name: str, arguments: dict[str, Any]) -> Any:
        """Calls a tool."""
        return await session.call_tool(name, arguments)

    def listed(self, reply: Any) -> dict[str, Any]:
        """The contract's summary of a list."""
        return tools_summary(reply)

    def called(self, reply: Any) -> dict[str, Any]:
        """The contract's summary of a call's result."""
        return call_summary(reply)

    async def provider(self, command: dict[str, Any], limit_s: float) -> Outcome:
        start_ns = perf_counter_ns()
        try:
            prepared = self.wallet.prepare(command["url"], command.get("auth") or {})
            start_ns = perf_counter_ns()
            provider = prepared.construct()
            end_ns = perf_counter_ns()
            self.wallet.keep(command["url"], provider)
        except Exception as error:
            return failed(start_ns, error)
        return Outcome(start_ns, end_ns)

    async def connect(self, command: dict[str, Any], limit_s: float) -> Outcome:
        start_ns = perf_counter_ns()
        if self._connection is not None:
            return Outcome(start_ns, start_ns, error=Failure("protocol", "already connected: disconnect first"))
        try:
            session = self.session_opener(command)
        except Exception as error:
            return failed(start_ns, error)
        connection = Connection(session)
        outcome = await connection.open(limit_s)
        if outcome.error is None:
            self._connection = connection
        return outcome

    async def list_tools(self, command: dict[str, Any], limit_s: float) -> Outcome:
        return await self._call(limit_s, self.list_session, self.listed)

    async def call_tool(self, command: dict[str, Any], limit_s: float) -> Outcome:
        name, arguments = str(command.get("name")), command.get("arguments") or {}
        if not command.get("progress"):
            return await self._call(limit_s, lambda session: self.call_session(session, name, arguments), self.called)
        heard: list[float] = []

        async def hear(progress: float, *_: Any) -> None:
            heard.append(progress)

        return await self._call(
            limit_s,
            lambda session: self.call_with_progress(session, name, arguments, hear),
            lambda reply: {**self.called(reply), "progress": len(heard)},
        )

    async def disconnect(self, command: dict[str, Any], limit_s: float) -> Outcome:
        connection, self._connection = self._connection, None
        if connection is None:
            return not_connected()
        return await connection.leave(limit_s)

    async def abandon(self) -> None:
        """Closes the connection, if one is open, at the end of the program."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.leave(ABANDON_LIMIT_S)

    async def _call(
        self, limit_s: float, call: Callable[[Any], Awaitable[Any]], summary: Callable[[Any], dict[str, Any]]
    ) -> Outcome:
        if self._connection is None:
            return not_connected()
        return await self._connection.perform(call, summary, limit_s)


class Connection:
    """One connection and the only task that touches its contexts."""

    def __init__(self, open_session: SessionOpener) -> None:
        self._open_session = open_session
        self._jobs: asyncio.Queue[Job | None] = asyncio.Queue()
        self._opened: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._started_ns = perf_counter_ns()
        self._left_from_ns = 0
        self._left_at_ns = 0
        self._task: asyncio.Task[None] | None = None

    async def open(self, limit_s: float) -> Outcome:
        self._task = asyncio.create_task(self._live())
        await asyncio.wait({self._opened, self._task}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if self._opened.done():
            return self._opened.result()
        # A cancel scope around the contexts could not be left before them, so the task itself is cancelled.
        end_ns = perf_counter_ns()
        timed_out = not self._task.done()
        error = await self._cancel()
        if timed_out:
            return Outcome(self._started_ns, end_ns, error=Failure("timeout", f"not connected after {limit_s:g} s"))
        return failed(self._started_ns, error or RuntimeError("the connection ended at once"), end_ns)

    async def perform(
        self, call: Callable[[Any], Awaitable[Any]], summary: Callable[[Any], dict[str, Any]], limit_s: float
    ) -> Outcome:
        assert self._task is not None  # open() has created it
        asked_ns = perf_counter_ns()
        if self._task.done():
            return failed(asked_ns, await self._cancel() or RuntimeError("the connection is closed"))
        job = Job(call, summary, limit_s)
        self._jobs.put_nowait(job)
        await asyncio.wait({job.done, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if job.done.done():
            return job.done.result()
        return failed(job.start_ns or asked_ns, await self._cancel() or RuntimeError("the connection was lost"))

    async def leave(self, limit_s: float) -> Outcome:
        assert self._task is not None  # see perform
        asked_ns = perf_counter_ns()
        self._jobs.put_nowait(None)
        await asyncio.wait({self._task}, timeout=limit_s)
        if not self._task.done():
            await self._cancel()
            return Outcome(
                asked_ns, perf_counter_ns(), error=Failure("timeout", f"not disconnected after {limit_s:g} s")
            )
        error = await self._cancel()
        if error is not None:
            return failed(asked_ns, error)
        return Outcome(self._left_from_ns, self._left_at_ns)

    async def _live(self) -> None:
        context = self._open_session()
        self._started_ns = perf_counter_ns()
        session, summary = await context.__aenter__()
        end_ns = perf_counter_ns()
        try:
            self._opened.set_result(Outcome(self._started_ns, end_ns, summary()))
            while (job := await self._jobs.get()) is not None:
                await job.run(session)
        except BaseException as error:
            if not await context.__aexit__(type(error), error, error.__traceback__):
                raise
            return
        self._left_from_ns = perf_counter_ns()
        await context.__aexit__(None, None, None)
        self._left_at_ns = perf_counter_ns()

    async def _cancel(self) -> BaseException | None:
        """Ends the task if it still runs, and returns the exception that ended it, if any."""
        assert self._task is not None  # see perform
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=ABANDON_LIMIT_S)
        if not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()


class Job:
    """One request on the connection, which runs in the connection's task."""

    def __init__(
        self, call: Callable[[Any], Awaitable[Any]], summary: Callable[[Any], dict[str, Any]], limit_s: float
    ) -> None:
        self._call, self._summary, self._limit_s = call, summary, limit_s
        self.start_ns = 0
        self.done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    async def run(self, session: Any) -> None:
        try:
            with anyio.fail_after(self._limit_s) as limit:
                self.start_ns = perf_counter_ns()
                reply = await self._call(session)
                end_ns = perf_counter_ns()
            outcome = Outcome(self.start_ns, end_ns, self._summary(reply))
        except Exception as error:
            outcome = failed(self.start_ns, error)
            if limit.cancelled_caught or isinstance(error, TimeoutError):
                outcome.error = Failure("timeout", f"no answer after {self._limit_s:g} s")
        if not self.done.done():
            self.done.set_result(outcome)


def server_summary(protocol_version: str | int, server: Any) -> dict[str, Any]:
    return {
        "protocol_version": str(protocol_version),
        "server_name": getattr(server, "name", None),
        "server_version": getattr(server, "version", None),
    }


def tools_summary(reply: Any) -> dict[str, Any]:
    cursor = getattr(reply, "next_cursor", None) or getattr(reply, "nextCursor", None)
    return listing(reply.tools, more=bool(cursor))


def listing(tools: list[Any], *, more: bool = False) -> dict[str, Any]:
    return {"tools": len(tools), "names": [tool.name for tool in tools[:NAMES_LIMIT]], "more": more}


def call_summary(reply: Any) -> dict[str, Any]:
    is_error = getattr(reply, "is_error", None)
    if is_error is None:
        is_error = getattr(reply, "isError", False)
    texts = [block.text for block in getattr(reply, "content", []) if getattr(block, "type", None) == "text"]
    return {"is_error": bool(is_error), "text": "\n".join(texts)[:TEXT_LIMIT]}


def not_connected() -> Outcome:
    now = perf_counter_ns()
    return Outcome(now, now, error=Failure("protocol", "not connected: connect first"))


def failed(start_ns: int, error: BaseException, end_ns: int | None = None) -> Outcome:
    end_ns = perf_counter_ns() if end_ns is None else end_ns
    cause = first_cause(error)
    # Only the first line, because pydantic's messages continue with a link to its manual.
    said = str(cause).strip().partition("\n")[0]
    message = f"{type(cause).__name__}: {said}" if said else type(cause).__name__
    return Outcome(start_ns, end_ns, error=Failure(kind_of(cause), message))


def first_cause(error: BaseException) -> BaseException:
    """The first leaf of nested exception groups, in which task groups wrap the actual failure."""
    while nested := getattr(error, "exceptions", None):
        error = nested[0]
    return error


def kind_of(error: BaseException) -> str:
    # Some SDKs wrap the cause in an error of their own.
    names = {kind.__name__ for one in (error, error.__cause__) if one is not None for kind in type(one).__mro__}
    status = getattr(getattr(error, "response", None), "status_code", None)
    if "Unsupported" in names:
        return "unsupported"
    if status in (401, 403) or names & {"OAuthFlowError", "ConsentRefused"}:
        return "auth"
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)) or "TimeoutException" in names:
        return "timeout"
    if names & {
        "TransportError",
        "ConnectError",
        "OSError",
        "ClosedResourceError",
        "BrokenResourceError",
        "EndOfStream",
    }:
        return "connection"
    if names & {"McpError", "MCPError", "HTTPStatusError", "StreamableHTTPError", "ValidationError"}:
        return "protocol"
    return "other"


def given(**options: Any) -> dict[str, Any]:
    """Leaves out options that are None, so that releases without such an option can be called, too."""
    return {name: value for name, value in options.items() if value is not None}
