"""Unnecessary work. Each test has a program with the problem behind the recorder, and one without it.

Tests of real releases are in test_old_releases.py.
"""

from __future__ import annotations

import asyncio
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.core_server import LIMIT_S
from support.finding_scenes import (
    Endpoint,
    Receive,
    Scope,
    Send,
    body,
    findings_by_code,
    findings_of_both_sides,
    patient,
    reply,
    serve_app,
    start_recorder,
    waiting,
)
from support.http_client import HttpClient

CALLS = 6
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


async def quick(_: dict[str, Any]) -> None:
    return None


@pytest.mark.parametrize("again", [True, False])
@patient
def test_a_client_that_gives_up_and_calls_again_has_its_tool_run_twice(again: bool) -> None:
    """It gives up after a second; the same call again, or another one."""
    endpoint = Endpoint(waiting)
    with serve_app(endpoint) as url, start_recorder(url) as record:
        for number in range(2):
            first = record.wire("one")
            first.begin("tools/call", {"name": "work", "arguments": {"seconds": 1.4, "number": number}})
            assert first.connection.sock is not None
            first.connection.sock.settimeout(1)
            with pytest.raises(TimeoutError):
                first.answer()
            first.close()
            second = record.wire("one")
            second.last = 100 + number
            arguments = {"seconds": 1.4, "number": number if again else 100 + number}
            assert "result" in second.ask("tools/call", {"name": "work", "arguments": arguments})
        findings = findings_by_code(record.finish())
    assert ("retried-execution" in findings) is again, findings
    if again:
        assert findings["retried-execution"]["context"]["repeats"] == 2


@pytest.mark.parametrize("before_each", [True, False])
@patient
def test_a_listing_before_each_call_is_named(before_each: bool) -> None:
    with serve_app(Endpoint(quick)) as url, start_recorder(url) as record:
        wire = record.wire("one")
        for number in range(CALLS):
            if before_each or number == 0:
                wire.ask("tools/list")
            wire.ask("tools/call", {"name": "work", "arguments": {"number": number}})
        findings = findings_by_code(record.finish())
    assert set(findings) == ({"repeated-listing"} if before_each else set())


class Gateway:
    """A server that asks others, one after another or all at once, and then answers."""

    def __init__(self, servers: list[str], *, at_once: bool) -> None:
        self.servers = servers
        self.at_once = at_once
        self.threads = ThreadPoolExecutor(len(servers))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = json.loads(await body(receive))
        loop = asyncio.get_running_loop()
        asking = [loop.run_in_executor(self.threads, post, url, asked) for url in self.servers if self.at_once]
        await asyncio.gather(*asking)
        for url in self.servers if not self.at_once else []:
            await loop.run_in_executor(self.threads, post, url, asked)
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": []}}
        await reply(send, 200, json.dumps(answer).encode(), "application/json")


def post(url: str, message: dict[str, Any]) -> None:
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=LIMIT_S)
    connection.request("POST", parts.path, json.dumps(message), {"Content-Type": "application/json"})
    assert connection.getresponse().read()
    connection.close()


@pytest.mark.parametrize("at_once", [False, True])
@patient
def test_a_gateway_that_asks_one_server_after_another_is_named(at_once: bool, tmp_path: Path) -> None:
    def slow() -> Endpoint:
        return Endpoint(quick, turns=lambda _, __: asleep(0.06))

    with ExitStack() as stack:
        behind = [stack.enter_context(start_recorder(stack.enter_context(serve_app(slow())))) for _ in range(3)]
        gateway = Gateway([one.recorder.url for one in behind], at_once=at_once)
        before = stack.enter_context(start_recorder(stack.enter_context(serve_app(gateway))))
        wire = before.wire("one")
        for _ in range(4):
            assert "result" in wire.ask("tools/list")
        findings = findings_of_both_sides(before.finish(), behind, tmp_path)
    assert ("serial-fan-out" in findings) is not at_once, findings
    if not at_once:
        assert findings["serial-fan-out"]["context"]["servers"] == 3


@pytest.mark.parametrize("requests", [3, 1])
@patient
def test_a_gateway_that_sends_several_requests_for_one_is_named(requests: int, tmp_path: Path) -> None:
    with ExitStack() as stack:
        behind = stack.enter_context(start_recorder(stack.enter_context(serve_app(Endpoint(quick)))))
        gateway = Gateway([behind.recorder.url] * requests, at_once=False)
        before = stack.enter_context(start_recorder(stack.enter_context(serve_app(gateway))))
        for _ in range(4):
            assert "result" in before.call("one").result(LIMIT_S)
        findings = findings_of_both_sides(before.finish(), [behind], tmp_path)
    assert ("amplification" in findings) is (requests > 1), findings


class asleep:
    """Holds a request up for a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def __aenter__(self) -> None:
        await asyncio.sleep(self.seconds)

    async def __aexit__(self, *exception: object) -> None: ...


class Introspecting(Endpoint):
    """A server that asks somebody else about each token, which takes a while; or that doesn't."""

    def __init__(self, seconds: float) -> None:
        super().__init__(quick)
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not any(name == b"authorization" for name, _ in scope["headers"]):
            await body(receive)
            await reply(send, 401, b"", "text/plain")
            return
        await asyncio.sleep(self.seconds)
        if scope["method"] == "POST" and scope["path"] == "/notify":
            await body(receive)
            await reply(send, 202, b"", "text/plain")
            return
        await super().__call__(scope, receive, send)


@pytest.mark.parametrize("seconds", [0.06, 0.0])
@patient
def test_a_token_that_is_looked_up_for_each_request_is_named(seconds: float) -> None:
    initialized = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    with serve_app(Introspecting(seconds)) as url, start_recorder(url) as record:
        port = int(record.recorder.url.rsplit(":", 1)[1].split("/")[0])
        wire = HttpClient(port)
        for _ in range(3):
            assert wire.send("POST", "/mcp", initialized, **JSON)[0] == 401
        wire.headers["Authorization"] = "Bearer t"
        for _ in range(4):
            assert wire.send("POST", "/notify", initialized, **JSON)[0] == 202
            wire.ask("tools/list")
            wire.ask("tools/call", {"name": "work", "arguments": {}})
            wire.ask("ping")
        wire.close()
        findings = findings_by_code(record.finish())
    assert ("constant-cost-per-request" in findings) is (seconds > 0), findings
    if seconds:
        assert findings["constant-cost-per-request"]["context"]["follows"] == "token"


METADATA = json.dumps({"resource": "http://127.0.0.1/mcp", "authorization_servers": []}).encode()


class Guarded(Endpoint):
    """A server that has OAuth metadata beside its endpoint."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith("/.well-known/"):
            await reply(send, 200, METADATA, "application/json")
            return
        await super().__call__(scope, receive, send)


@pytest.mark.parametrize("each_time", [True, False])
@patient
def test_metadata_that_is_fetched_for_each_call_is_named(each_time: bool) -> None:
    with serve_app(Guarded(quick)) as url, start_recorder(url) as record:
        wire = record.wire("one")
        wire.headers["Authorization"] = "Bearer t"
        for number in range(CALLS):
            if each_time or number == 0:
                assert wire.send("GET", "/.well-known/oauth-protected-resource/mcp")[0] == 200
            wire.ask("tools/call", {"name": "work", "arguments": {"number": number}})
        findings = findings_by_code(record.finish())
    assert ("discovery-repeated" in findings) is each_time, findings
