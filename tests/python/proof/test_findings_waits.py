"""Waits, loops and connections of a client's own making, and servers that start slowly or list too much.

Each test has a program with the problem behind the recorder, and one without it. Tests of real releases are in
test_old_releases.py.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mcpace import _core
from mcpace.lab import targets
from mcpace.lab.clients import measure
from mcpace.lab.clients.plan import Settings
from mcpace.lab.progress import Silent
from mcpace.lab.targets import Tool
from support.core_server import LIMIT_S
from support.finding_scenes import (
    Endpoint,
    Receive,
    Recorded,
    Scope,
    Send,
    body,
    findings_by_code,
    head,
    patient,
    reply,
    serve_app,
    start_recorder,
)
from support.http_client import HttpClient
from support.release_proofs import by_subject

CALLS = 4
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


async def quick(_: dict[str, Any]) -> None:
    return None


class Calls:
    """A client program's own stamps of its calls."""

    def __init__(self) -> None:
        self.stamps: list[tuple[int, int, str]] = []

    def call(self, act: Callable[[], object], outcome: str = "ok") -> None:
        begun = time.monotonic_ns()
        act()
        self.stamps.append((begun, time.monotonic_ns(), outcome))

    def explain(self, record: Recorded) -> dict[str, dict[str, Any]]:
        recording = record.finish()
        for begun, end, outcome in self.stamps:
            recording.add_call("call", "work", begun, end, outcome)
        return findings_by_code(recording)


def port_of(record: Recorded) -> int:
    return int(record.recorder.url.rsplit(":", 1)[1].split("/")[0])


def request(number: int) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "work"}})


class HeldOpen:
    """A server that keeps a reply's stream open for a while after the result."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = json.loads(await body(receive))
        await head(send, 200, "text/event-stream")
        answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
        await send({"type": "http.response.body", "body": f"data: {answer}\n\n".encode(), "more_body": True})
        await asyncio.sleep(self.seconds)
        await send({"type": "http.response.body", "body": b""})


def until_result(port: int, number: int) -> socket.socket:
    """Asks on a connection of its own and reads up to the result."""
    made = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
    content = request(number)
    lines = ["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}", *(f"{name}: {value}" for name, value in JSON.items())]
    lines += ["Mcp-Session-Id: one", f"Content-Length: {len(content)}", "", content]
    made.sendall("\r\n".join(lines).encode())
    seen = b""
    while b'"result"' not in seen:
        seen += made.recv(4096)
    return made


@pytest.mark.parametrize("drains", [True, False])
@patient
def test_a_client_that_reads_a_stream_to_its_end_has_its_result_late(drains: bool) -> None:
    calls = Calls()
    with serve_app(HeldOpen(0.3)) as url, start_recorder(url) as record:

        def call(number: int) -> None:
            made = until_result(port_of(record), number)
            while drains and made.recv(4096)[-5:] != b"0\r\n\r\n":
                pass
            made.close()

        for number in range(CALLS):
            calls.call(lambda number=number: call(number))  # type: ignore[misc]
        findings = calls.explain(record)
    assert ("late-delivery" in findings) is drains, findings
    if drains:
        assert findings["late-delivery"]["context"]["calls"] == CALLS


@pytest.mark.parametrize("leaves", [True, False])
@patient
def test_a_client_that_drops_streams_at_their_result_needs_connections_anew(leaves: bool) -> None:
    """Beside another client that reads them to their end, which comes soon."""
    with serve_app(HeldOpen(0.005)) as url, start_recorder(url) as record:
        sound = record.wire("other")
        for number in range(CALLS):
            sound.call("work", number=number)
        wire = record.wire("one")
        for number in range(CALLS):
            if leaves:
                until_result(port_of(record), number).close()
            else:
                wire.call("work", number=number)
        findings = findings_by_code(record.finish())
    assert set(findings) == ({"stream-not-drained"} if leaves else set())


@pytest.mark.parametrize("each", [True, False])
@patient
def test_a_client_with_a_connection_for_each_request_is_named(each: bool) -> None:
    with serve_app(Endpoint(quick)) as url, start_recorder(url) as record:
        for number in range(CALLS + 2):
            record.call("one", number=number).result(LIMIT_S)
            if each:
                record.free["one"].pop().close()
        findings = findings_by_code(record.finish())
    assert set(findings) == ({"connection-per-request"} if each else set())


@pytest.mark.parametrize("lists", [True, False])
@patient
def test_a_listing_between_a_result_and_its_return_is_named(lists: bool) -> None:
    calls = Calls()
    with serve_app(Endpoint(quick)) as url, start_recorder(url) as record:
        wire = record.wire("one")

        def call(number: int) -> None:
            wire.call("work", number=number)
            if lists:
                wire.ask("tools/list")

        for number in range(CALLS):
            calls.call(lambda number=number: call(number))  # type: ignore[misc]
        findings = calls.explain(record)
    assert ("hidden-listing" in findings) is lists, findings


class Tokens(Endpoint):
    """A server that gives tokens."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/token":
            await body(receive)
            await reply(send, 200, b'{"access_token":"t","token_type":"bearer"}', "application/json")
            return
        await super().__call__(scope, receive, send)


@pytest.mark.parametrize("hangs", [True, False])
@patient
def test_silence_after_a_token_until_the_call_fails_is_named(hangs: bool) -> None:
    """A client that waits for a lock that it holds itself, until its time-out."""
    calls = Calls()
    with serve_app(Tokens(quick)) as url, start_recorder(url) as record:
        wire = record.wire("one")
        lock, limit = threading.Lock(), 5.5

        def call() -> None:
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            with lock:
                assert wire.send("POST", "/token", "grant_type=refresh_token", **form)[0] == 200
                if hangs:
                    assert not lock.acquire(timeout=limit)
                    return
            wire.call("work")

        calls.call(call, "failed" if hangs else "ok")
        findings = calls.explain(record)
    assert ("auth-deadlock" in findings) is hangs, findings


class Resumed:
    """A server whose streams end before the result, and which has the answer for who comes back, or never."""

    def __init__(self, answers: bool) -> None:
        self.answers = answers
        self.asked: dict[str, Any] = {}
        self.resumed = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await head(send, 200, "text/event-stream")
        if scope["method"] == "POST":
            self.asked = json.loads(await body(receive))
            await send({"type": "http.response.body", "body": b"id: 1\ndata: \n\n"})
            return
        self.resumed += 1
        answer = json.dumps({"jsonrpc": "2.0", "id": self.asked["id"], "result": {}})
        event = f"data: {answer}\n\n".encode() if self.answers and self.resumed == 5 else b": nothing\n\n"
        await send({"type": "http.response.body", "body": event})


@pytest.mark.parametrize("answers", [False, True])
@patient
def test_a_stream_that_is_resumed_without_end_is_named(answers: bool) -> None:
    calls = Calls()
    with serve_app(Resumed(answers)) as url, start_recorder(url) as record:
        wire = record.wire("one")

        def call() -> None:
            wire.send("POST", "/mcp", request(1), **JSON)
            for _ in range(5):
                events = {"Accept": "text/event-stream", "Last-Event-ID": "1"}
                assert wire.send("GET", "/mcp", **events)[0] == 200

        calls.call(call, "ok" if answers else "failed")
        findings = calls.explain(record)
    assert ("resume-loop" in findings) is not answers, findings


class Away(Endpoint):
    """A server that has too much to do."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await body(receive)
        await reply(send, 429, b"", "text/plain")


@pytest.mark.parametrize(("pauses", "storm"), [([0.15] * 7, True), ([0.04, 0.08, 0.16, 0.32, 0.64, 1.28], False)])
@patient
def test_a_refused_client_that_asks_at_a_steady_pace_is_named(pauses: list[float], storm: bool) -> None:
    with serve_app(Away(quick)) as url, start_recorder(url) as record:
        wire = record.wire("one")
        for number, pause in enumerate([*pauses, 0.0]):
            assert wire.send("POST", "/mcp", request(number), **JSON)[0] == 429
            time.sleep(pause)
        findings = findings_by_code(record.finish())
    assert ("retry-storm" in findings) is storm, findings


@patient
def test_many_clients_that_try_again_at_the_same_moments_are_named() -> None:
    clients, moments = 6, 4
    with serve_app(Away(quick)) as url, start_recorder(url) as record, ThreadPoolExecutor(clients) as threads:
        together = threading.Barrier(clients)

        def client(number: int) -> None:
            wire = HttpClient(port_of(record))
            wire.headers["Mcp-Session-Id"] = f"s{number}"
            for moment in range(moments):
                together.wait(LIMIT_S)
                assert wire.send("POST", "/mcp", request(moment), **JSON)[0] == 429
                time.sleep(0.8)
            wire.close()

        for future in [threads.submit(client, number) for number in range(clients)]:
            future.result(LIMIT_S)
        findings = findings_by_code(record.finish())
    assert findings["retry-storm"]["context"]["pattern"] == "in-step"


def tools(number: int) -> bytes:
    def schema(tool: int) -> dict[str, object]:
        described = {f"p{n}": f"{tool} {n} {'x' * 60}" for n in range(8)}
        return {
            "type": "object",
            "properties": {name: {"type": "string", "description": words} for name, words in described.items()},
        }

    return json.dumps([{"name": f"tool{n}", "inputSchema": schema(n)} for n in range(number)]).encode()


@pytest.mark.parametrize("number", [142, 10])
@patient
def test_a_listing_of_many_tools_is_named(number: int) -> None:
    listed = _core.Server("test", "1")
    for tool in json.loads(tools(number)):
        listed.add_tool(json.dumps(tool).encode(), _core.Handler(lambda: "", output="text"))
    running = listed.serve_http(_core.HttpOptions(port=0, stateless=True))
    try:
        target = targets.parse_target(f"http://127.0.0.1:{running.port}/mcp")
        run = measure.run(target, Settings(trials=3), Silent())
    finally:
        running.stop()
    assert by_subject(run)["mcpace-client"] == ({"large-listing"} if number > 100 else set())


# A server of stdio that needs a while to begin, or doesn't.
SERVER = """
import json, sys, time
time.sleep(float(sys.argv[1]))
for asked in map(json.loads, sys.stdin):
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        server = {"name": "slow", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}
    else:
        result = {"content": []}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("seconds", [1.4, 0.0])
@patient
def test_a_server_that_takes_long_to_start_is_named(tmp_path: Path, seconds: float) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    command = shlex.join([sys.executable, "-S", str(tmp_path / "server.py"), str(seconds)])
    target = targets.parse_target(f"stdio:{command}", tool=Tool("work"))
    run = measure.run(target, Settings(trials=2), Silent(), revision="2025-06-18")
    [found_of_it] = by_subject(run).values()
    assert ("slow-start" in found_of_it) is (seconds > 0)
