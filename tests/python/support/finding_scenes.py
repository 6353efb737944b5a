"""Servers and clients that reproduce the causes of findings, with the real recorder between them.

A server is an ASGI app that uvicorn serves on a thread. Arguments select the problem.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec

import pytest
import uvicorn

from mcpace import _core
from support.core_server import LIMIT_S
from support.http_client import HttpClient
from support.kept_runs import keep_recording

P = ParamSpec("P")
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OF_THE_MACHINE = {"noisy-run"}
"""It is said of a busy machine, rightly, and of nobody else."""
TRIES = 5
"""Most attempts of a test that a busy machine may disturb."""
TOOL_S = 0.25


@dataclass
class Endpoint:
    """An MCP endpoint as an ASGI app."""

    tool: Callable[[dict[str, Any]], Awaitable[None]]
    """Implementation of the tool."""
    events: bool = False
    """Whether replies are events, whose head goes out before the call."""
    turns: Callable[[str, str], contextlib.AbstractAsyncContextManager[object]] | None = None
    """Returns the context that a request of a session and method holds while it is served."""
    head_in_turn: bool = False
    """Whether the head of a stream waits for that as well."""
    ordered: bool = False
    """Whether replies leave in the order of the requests, however early they are ready."""
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released for each call that the server has."""
    last: asyncio.Event | None = None
    """Set when the last request's reply has left."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        if scope["method"] != "POST":
            await reply(send, 405, b"", "text/plain")
            return
        asked = json.loads(await body(receive))
        if asked["method"] == "tools/call":
            self.arrived.release()
        turn_to_leave = self.queue_up()
        streams = self.events and "id" in asked
        if streams and not self.head_in_turn:
            await head(send, 200, "text/event-stream")
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        turn = (
            self.turns(headers.get("mcp-session-id", ""), asked["method"]) if self.turns else contextlib.nullcontext()
        )
        async with turn:
            if streams and self.head_in_turn:
                await head(send, 200, "text/event-stream")
            if asked["method"] == "tools/call":
                await self.tool(asked["params"].get("arguments", {}))
        await self.leave(turn_to_leave)
        if "id" not in asked:
            await reply(send, 202, b"", "text/plain")
            return
        answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
        if streams:
            await send({"type": "http.response.body", "body": f"data: {answer}\n\n".encode()})
        else:
            await reply(send, 200, answer.encode(), "application/json")

    def queue_up(self) -> tuple[asyncio.Event, asyncio.Event]:
        before, own = self.last, asyncio.Event()
        self.last = own
        return before or own, own

    async def leave(self, turn: tuple[asyncio.Event, asyncio.Event]) -> None:
        before, own = turn
        if self.ordered and before is not own:
            await before.wait()
        own.set()


async def waiting(arguments: dict[str, Any]) -> None:
    """A tool that waits asynchronously, for ``seconds`` where given."""
    await asyncio.sleep(arguments.get("seconds", TOOL_S))


async def blocking(arguments: dict[str, Any]) -> None:
    """A tool that blocks the event loop, for ``seconds`` where given."""
    time.sleep(arguments.get("seconds", TOOL_S))


def in_threads(number: int) -> Callable[[dict[str, Any]], Awaitable[None]]:
    """A tool that runs in a thread pool of this size, for ``seconds`` where given."""
    pool = ThreadPoolExecutor(number)

    async def tool(arguments: dict[str, Any]) -> None:
        await asyncio.get_running_loop().run_in_executor(pool, time.sleep, arguments.get("seconds", TOOL_S))

    return tool


def so_many_at_a_time(number: int) -> Callable[[str, str], contextlib.AbstractAsyncContextManager[object]]:
    """A pool of which every request takes a place."""
    pool = asyncio.Semaphore(number)
    return lambda _, __: pool


def one_of_a_session() -> Callable[[str, str], contextlib.AbstractAsyncContextManager[object]]:
    """One lock for each session."""
    locks: dict[str, asyncio.Lock] = {}
    return lambda session, _: locks.setdefault(session, asyncio.Lock())


async def head(send: Send, status: int, kind: str, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", kind.encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def reply(send: Send, status: int, content: bytes, kind: str) -> None:
    await head(send, status, kind, (b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.body", "body": content})


async def answer_request(
    scope: Scope, receive: Receive, send: Send, result: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
) -> None:
    """Answers a request with the value of ``result``. Accepts notifications, and has no standalone stream."""
    asked = json.loads(await body(receive) or b"{}") if scope["method"] == "POST" else None
    if asked is None:
        await reply(send, 405, b"", "text/plain")
    elif "id" not in asked:
        await reply(send, 202, b"", "text/plain")
    else:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": await result(asked)}
        await reply(send, 200, json.dumps(answer).encode(), "application/json")


async def body(receive: Receive) -> bytes:
    content, more = b"", True
    while more:
        part = await receive()
        content, more = content + part.get("body", b""), part.get("more_body", False)
    return content


@contextmanager
def serve_app(app: App, *, nodelay: bool = True, listener: socket.socket | None = None) -> Iterator[str]:
    """Serves ``app`` with uvicorn on a thread, on ``listener`` where given, and yields its URL.

    asyncio sets TCP_NODELAY only if the listening socket names its protocol, which the sockets of ``uvicorn --workers``
    and ``--fd`` don't.
    """
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    if listener is None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP if nodelay else 0)
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        host, port = listener.getsockname()
        yield f"http://{host}:{port}/mcp"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(LIMIT_S)
        listener.close()


@dataclass
class Recorded:
    """A recorder before a server, and clients of the recorder."""

    recorder: _core.Recorder
    wires: list[HttpClient] = field(default_factory=list)
    free: dict[str | None, list[HttpClient]] = field(default_factory=dict)
    """Connections that are kept for the next request of their session."""
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(64))

    def wire(self, session: str | None = None) -> HttpClient:
        kept = self.free.setdefault(session, [])
        if kept:
            return kept.pop()
        wire = HttpClient(int(self.recorder.url.rsplit(":", 1)[1].split("/")[0]))
        if session is not None:
            wire.headers["Mcp-Session-Id"] = session
        self.wires.append(wire)
        return wire

    def ask(self, session: str | None, method: str, params: dict[str, Any] | None = None) -> Future[dict[str, Any]]:
        """Starts a request on a connection that carries no other request."""
        wire = self.wire(session)

        def asking() -> dict[str, Any]:
            answer = wire.ask(method, params)
            self.free[session].append(wire)
            return answer

        return self.threads.submit(asking)

    def call(self, session: str | None = None, **arguments: Any) -> Future[dict[str, Any]]:
        return self.ask(session, "tools/call", {"name": "work", "arguments": arguments})

    def ping(self, session: str | None = None) -> Future[dict[str, Any]]:
        return self.ask(session, "ping")

    def finish(self) -> _core.Recording:
        for wire in self.wires:
            wire.close()
        self.threads.shutdown()
        return self.recorder.stop()


@contextmanager
def start_recorder(url: str, **options: Any) -> Iterator[Recorded]:
    made = Recorded(_core.Recorder(url, **options))
    try:
        yield made
    finally:
        made.finish()


_findings_of_try: list[set[str]] = []
"""Codes that each call of `findings_by_code` returned in the current try of a test."""


def patient(test: Callable[P, None]) -> Callable[P, None]:
    """Tries a test again that misses a finding, because a busy machine can hide differences of milliseconds.

    A finding that a test looks up by its code and that is missing is a :class:`KeyError`. Only a missing finding is
    tried again. A finding that a failed try names and the passing try does not name is false, and fails the test: a
    control is silent in every try. A test that never passes is skipped if the machine is twice as busy as it has
    processors.
    """

    @functools.wraps(test)
    def tried(*args: P.args, **named: P.kwargs) -> None:
        failed: list[list[set[str]]] = []
        for remaining in reversed(range(TRIES)):
            _findings_of_try.clear()
            try:
                test(*args, **named)
                break
            except (AssertionError, KeyError):
                if remaining == 0 and os.getloadavg()[0] > 2 * (os.cpu_count() or 1):
                    pytest.skip(f"this machine is too busy to show it (load {os.getloadavg()[0]:.0f})")
                if remaining == 0:
                    raise
                failed.append(list(_findings_of_try))
        false = false_findings(failed, _findings_of_try)
        assert not false, f"a try that failed named {', '.join(sorted(false))}, the try that passed did not"

    return tried


def false_findings(failed: list[list[set[str]]], passed: list[set[str]]) -> set[str]:
    """Codes that a failed try named in a place where the passing try did not. A try is a list of the codes by place."""
    return {code for one in failed for codes, right in zip(one, passed, strict=False) for code in codes - right}


def findings_by_code(recording: _core.Recording, *, machine: bool = False) -> dict[str, dict[str, Any]]:
    """The findings by their codes, without those about a busy machine unless `machine` asks for them."""
    keep_recording(recording)
    left_out = set() if machine else OF_THE_MACHINE
    findings = {finding["code"]: finding for finding in recording.findings() if finding["code"] not in left_out}
    _findings_of_try.append(set(findings))
    return findings


def findings_of_both_sides(before: _core.Recording, behind: list[Recorded], folder: Path) -> dict[str, dict[str, Any]]:
    """The findings about a gateway by their codes, from a recording before it and the recorders behind it."""
    files = [folder / f"behind-{number}" for number in range(len(behind))]
    for file, one in zip(files, behind, strict=True):
        one.finish().save(str(file))
    keep_recording(before, files)
    findings = before.explained(behind=_core.Recording.beside([str(file) for file in files])).findings
    return {finding["code"]: finding for finding in findings}
