"""Problems between a client and its server. Each test uses the recorder, and has a sound control."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcpace import _core
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
    waiting,
)
from support.http_client import HttpClient

CALLS = 12


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1].split("/")[0])


def ask(record: Recorded, wire: HttpClient, method: str, params: dict[str, Any]) -> None:
    """A request that follows redirects, as SDKs do."""
    wire.last += 1
    content = json.dumps({"jsonrpc": "2.0", "id": wire.last, "method": method, "params": params})
    accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    path, status = "/mcp", 307
    while status == 307:
        status, headers, _ = wire.send("POST", path, content, **accept)
        path = headers.get("location", path).removeprefix(record.recorder.url.removesuffix("/mcp"))
    assert status == 200


@contextmanager
def target(*faults: str, **options: Any) -> Iterator[str]:
    made = _core.Target("simple", faults=list(faults), **options)
    try:
        yield made.url
    finally:
        made.stop()


def calls(record: Recorded, number: int = CALLS) -> _core.Recording:
    """Calls of two tools and a listing now and then, one after another on one connection."""
    wire = record.wire()
    for at in range(number):
        tool, given = (("echo", {"text": "x"}), ("double", {"n": 2}))[at % 2]
        ask(record, wire, "tools/call", {"name": tool, "arguments": given})
        if at % 4 == 0:
            ask(record, wire, "tools/list", {})
    return record.finish()


@patient
def test_two_small_writes_wait_for_the_kernels_acknowledgement() -> None:
    with target("two-writes") as url, start_recorder(url) as record:
        finding = findings_by_code(calls(record))["delayed-ack"]
    assert finding["context"]["pauses"] >= CALLS / 2
    assert finding["confidence"]["reason"] == "acknowledgements-own-time"
    # The experiment that would disprove it: the same server, acknowledged at once.
    with target("two-writes") as url, start_recorder(url, quickack=True) as record:
        assert findings_by_code(calls(record)) == {}


@pytest.mark.parametrize("nodelay", [False, True])
@patient
def test_a_server_whose_sockets_lack_nodelay_stalls(nodelay: bool) -> None:
    async def quick(_: dict[str, Any]) -> None:
        return None

    with serve_app(Endpoint(quick), nodelay=nodelay) as url, start_recorder(url) as record:
        findings = findings_by_code(calls(record))
    assert set(findings) == (set() if nodelay else {"delayed-ack"})


@patient
def test_a_server_that_takes_forty_milliseconds_itself_is_no_stall() -> None:
    with target("first-byte=41ms") as url, start_recorder(url) as record:
        assert findings_by_code(calls(record)) == {}


@pytest.mark.parametrize("faults", [["redirect"], []])
@patient
def test_a_redirect_before_each_request_is_named(faults: list[str]) -> None:
    with target(*faults) as url, start_recorder(url) as record:
        findings = findings_by_code(calls(record))
    assert set(findings) == ({"redirect-per-request"} if faults else set())
    if faults:
        context = findings["redirect-per-request"]["context"]
        assert (context["status"], context["from"], context["to"]) == (307, "/mcp", "/mcp/")


class Old:
    """A server of the HTTP+SSE transport (2024-11-05), which refuses a POST to the place of its stream."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":
            await head(send, 200, "text/event-stream")
            endpoint = b"event: endpoint\ndata: /messages\n\n"
            await send({"type": "http.response.body", "body": endpoint, "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        await body(receive)
        await reply(send, 405 if scope["path"] == "/mcp" else 202, b"", "text/plain")


@pytest.mark.parametrize("probes", [True, False])
@patient
def test_a_transport_that_is_tried_out_on_each_connect_is_named(probes: bool) -> None:
    initialize = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
    with serve_app(Old()) as url, start_recorder(url) as record:
        for _ in range(3):
            wire, stream = HttpClient(port_of(record.recorder.url)), HttpClient(port_of(record.recorder.url))
            if probes:
                assert wire.send("POST", "/mcp", initialize, **{"Content-Type": "application/json"})[0] == 405
            stream.connection.request("GET", "/mcp", headers={"Accept": "text/event-stream"})
            assert stream.connection.getresponse().readline() == b"event: endpoint\n"
            assert wire.send("POST", "/messages", initialize, **{"Content-Type": "application/json"})[0] == 202
            wire.close()
            stream.close()
        findings = findings_by_code(record.finish())
    assert ("transport-probing" in findings) is probes
    if probes:
        assert findings["transport-probing"]["context"] == {"probes": 3, "status": 405}


def progress(number: int) -> bytes:
    told = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": number}}
    return f"data: {json.dumps(told)}\n\n".encode()


def telling(*, holds_back: bool) -> Callable[[Scope, Receive, Send], Any]:
    """A tool that tells its progress, through something that lets its events go at once or holds them back."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked = json.loads(await body(receive))
        await head(send, 200, "text/event-stream")
        answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
        held = b""
        for event in [*(progress(number) for number in range(4)), f"data: {answer}\n\n".encode()]:
            await asyncio.sleep(0.08)
            held += event
            if not holds_back:
                await send({"type": "http.response.body", "body": held, "more_body": True})
                held = b""
        await send({"type": "http.response.body", "body": held})

    return app


@pytest.mark.parametrize("holds_back", [True, False])
@patient
def test_progress_that_something_holds_back_comes_at_once(holds_back: bool) -> None:
    with serve_app(telling(holds_back=holds_back)) as url, start_recorder(url) as record:
        wire = record.wire()
        for _ in range(2):
            wire.send("POST", body=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}))
        findings = findings_by_code(record.finish())
    assert ("buffered-stream" in findings) is holds_back
    if holds_back:
        assert findings["buffered-stream"]["context"]["events"] == 8
        assert findings["buffered-stream"]["alternatives"][0]["code"] == "blocked-event-loop"


def proxy(url: str, *, buffers: bool) -> Callable[[Scope, Receive, Send], Any]:
    """Proxy of a server that forwards events as they arrive, or buffers all of them until the end."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        content = await body(receive)
        host = urlsplit(url).netloc
        reader, writer = await asyncio.open_connection(*host.split(":"))
        asked = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        writer.write(f"{asked}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        await reader.readuntil(b"\r\n\r\n")
        await head(send, 200, "text/event-stream")
        held = b""
        while (size := int(await reader.readline(), 16)) > 0:
            held += await reader.readexactly(size)
            await reader.readline()
            if not buffers:
                await send({"type": "http.response.body", "body": held, "more_body": True})
                held = b""
        writer.close()
        await send({"type": "http.response.body", "body": held})

    return app


@pytest.mark.parametrize("buffers", [True, False])
@patient
def test_a_recording_behind_a_proxy_tells_that_it_is_the_proxy_that_holds_progress_back(buffers: bool) -> None:
    with ExitStack() as stack:
        behind = stack.enter_context(start_recorder(stack.enter_context(serve_app(telling(holds_back=False)))))
        between = stack.enter_context(serve_app(proxy(behind.recorder.url, buffers=buffers)))
        record = stack.enter_context(start_recorder(between))
        wire = record.wire()
        for _ in range(2):
            wire.send("POST", body=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}))
        findings = record.finish().explained(behind=behind.finish()).findings
    held = [finding for finding in findings if finding["code"] == "buffered-stream"]
    assert bool(held) is buffers, findings
    for finding in held:
        assert finding["confidence"] == {"level": "high", "reason": "spread-behind"}
        assert finding["alternatives"] == []


class Cutting:
    """Standalone streams that something cuts after ``age`` seconds, or that stay."""

    def __init__(self, age: float | None) -> None:
        self.age = age

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await head(send, 200, "text/event-stream")
        await send({"type": "http.response.body", "body": b": open\n\n", "more_body": True})
        if self.age is not None:
            await asyncio.sleep(self.age)
            await send({"type": "http.response.body", "body": b""})
            return
        while (await receive())["type"] != "http.disconnect":
            pass


def stream(record: Recorded, session: str) -> socket.socket:
    """A session's standalone stream, its head read."""
    made = socket.create_connection(("127.0.0.1", port_of(record.recorder.url)), timeout=LIMIT_S)
    made.sendall(
        f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port_of(record.recorder.url)}\r\n"
        f"Accept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n".encode()
    )
    seen = b""
    while b": open" not in seen:
        seen += made.recv(4096)
    return made


def ended(made: socket.socket) -> None:
    while b"0\r\n\r\n" not in made.recv(4096):
        pass


@patient
def test_streams_that_are_cut_at_one_age_are_told_from_those_that_clients_time_out() -> None:
    age = 5.3
    with serve_app(Cutting(age)) as url, start_recorder(url) as record:
        first = [(name, stream(record, name)) for name in ("one", "two", "three")]
        for _, made in first:
            ended(made)
        again = [stream(record, name) for name, _ in first]
        recording = record.finish()
        for made in [*again, *(made for _, made in first)]:
            made.close()
    context = findings_by_code(recording)["clustered-stream-lifetime"]["context"]
    assert (context["closed_by"], context["streams"]) == ("server", 3)
    assert context["age_ns"] >= age * 1e9
    assert findings_by_code(recording).keys() == {"clustered-stream-lifetime"}


@patient
def test_streams_that_their_client_gives_up_at_one_age_are_its_time_out() -> None:
    age = 5.3
    with serve_app(Cutting(None)) as url, start_recorder(url) as record, ThreadPoolExecutor(3) as threads:

        def timed_out(name: str) -> socket.socket:
            made = stream(record, name)
            made.settimeout(age)
            with pytest.raises(TimeoutError):
                made.recv(1)
            made.close()
            return stream(record, name)

        again = [future.result(LIMIT_S) for future in [threads.submit(timed_out, name) for name in ("a", "b", "c")]]
        recording = record.finish()
        for made in again:
            made.close()
    context = findings_by_code(recording)["clustered-stream-lifetime"]["context"]
    assert (context["closed_by"], context["streams"]) == ("client", 3)


@pytest.mark.parametrize("connections", [2, 8])
@patient
def test_a_client_whose_connections_are_all_taken_lets_requests_wait(connections: int) -> None:
    """A client that opens so many connections at most; two long calls are open when a third begins."""
    endpoint = Endpoint(waiting)
    stamps: list[tuple[int, int]] = []
    with serve_app(endpoint) as url, start_recorder(url) as record:
        free = threading.Semaphore(connections)

        def call(seconds: float) -> None:
            begun = time.monotonic_ns()
            with free:
                record.call(seconds=seconds).result(LIMIT_S)
            stamps.append((begun, time.monotonic_ns()))

        with ThreadPoolExecutor(3) as threads:
            for _ in range(2):
                long = [threads.submit(call, seconds) for seconds in (0.8, 1.2)]
                for _ in long:
                    assert endpoint.arrived.acquire(timeout=LIMIT_S)
                wait([*long, threads.submit(call, 0.01)], timeout=LIMIT_S)
                assert endpoint.arrived.acquire(timeout=LIMIT_S)
        recording = record.finish()
    for begun, end in sorted(stamps):
        recording.add_call("call", "work", begun, end)
    findings = findings_by_code(recording)
    assert ("connection-limit" in findings) is (connections == 2)
    if connections == 2:
        assert findings["connection-limit"]["context"]["limit"] == 2
        assert findings["connection-limit"]["context"]["held"] == 2
