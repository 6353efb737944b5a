"""The compiled part of the Python server over HTTP: tokens, other paths, endpoints without a socket, options."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from mcpace import _core
from support.core_server import LIMIT_S, coroutine, server, serving, sync


@pytest.mark.parametrize(
    ("token", "status"), [(None, 401), ("unknown", 401), ("old", 401), ("poor", 403), ("good", 200), ("crash", 503)]
)
def test_tokens_are_verified_by_a_coroutine(token: str | None, status: int) -> None:
    async def verify(token: str) -> SimpleNamespace | None:
        await asyncio.sleep(0)
        if token == "crash":
            raise RuntimeError
        if token == "unknown":
            return None
        expires_at = 1 if token == "old" else time.time() + 60
        return SimpleNamespace(client_id="me", scopes=["a"] if token != "poor" else [], expires_at=expires_at)

    who = sync(lambda ctx: ctx.principal.client_id, context="ctx")
    options = {"token_verifier": verify, "resource": "https://mcp.example/mcp", "required_scopes": ["a"]}
    with serving(server(who=who), **options) as connect:
        wire = connect()
        if token:
            wire.headers = {"Authorization": f"Bearer {token}"}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who"}})
        accept = {"Content_Type": "application/json", "Accept": "application/json"}
        got, headers, reply = wire.send("POST", body=body, **accept)
        assert got == status
        assert ("WWW-Authenticate" in headers) == (status in (401, 403))
        if status == 200:
            assert json.loads(reply)["result"]["content"][0]["text"] == "me"


@pytest.mark.parametrize("subject", [None, ""])
def test_a_verifier_that_names_nobody_lets_nobody_in(subject: str | None, caplog: pytest.LogCaptureFixture) -> None:
    """Callers without a name would share one identity, and with it sessions and limits."""

    async def verify(token: str) -> SimpleNamespace:
        client_id = "app" if token == "client" else ""
        return SimpleNamespace(client_id=client_id, subject="ada" if token == "user" else subject, scopes=["a"])

    with serving(server(), token_verifier=verify, resource="https://mcp.example/mcp") as connect:
        accept = {"Content_Type": "application/json", "Accept": "application/json"}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})

        def status(token: str) -> int:
            return connect().send("POST", body=body, **accept, Authorization=f"Bearer {token}")[0]

        assert [status(token) for token in ("client", "user")] == [200, 200]
        assert not caplog.records
        assert status("nobody") == 503
    assert "names nobody" in caplog.text


def test_a_verifier_that_never_answers_is_given_up() -> None:
    async def never(token: str) -> None:
        await asyncio.Event().wait()

    options = {"token_verifier": never, "resource": "https://mcp.example/mcp", "token_timeout_s": 0.05}
    with serving(server(), **options) as connect:
        assert connect().send("GET", Authorization="Bearer x")[0] == 503


async def mirror(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An ASGI application that returns the request, and fails at one path."""
    if scope["path"] == "/crash":
        raise RuntimeError("on purpose")
    body = b""
    more = True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    await send({"type": "http.response.start", "status": 201, "headers": [(b"x-path", scope["raw_path"])]})
    if scope["path"] == "/half":
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError("on purpose")
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": scope["query_string"]})


def test_other_paths_go_to_an_asgi_application(caplog: pytest.LogCaptureFixture) -> None:
    with serving(server(), asgi=mirror, limits={"body": 300_000}) as connect:
        wire = connect()
        sent = "z" * 200_000
        status, headers, body = wire.send("POST", "/a%20b?q=1", sent)
        assert (status, headers["x-path"], body) == (201, "/a%20b", sent.encode() + b"q=1")
        assert wire.send("POST", "/long", "z" * 300_001)[0] == 413
        assert connect().send("GET", "/crash")[0] == 500
        assert connect().send("GET", "/x", Host="evil.example")[0] == 403
        assert connect().send("GET", "/mcp")[0] == 405
        assert "on purpose" in caplog.text


def test_an_asgi_application_learns_that_its_client_went() -> None:
    began, ended = threading.Event(), threading.Event()

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        began.set()
        assert (await receive())["type"] == "http.disconnect"
        ended.set()

    with serving(server(), asgi=stream) as connect:
        wire = connect()
        wire.connection.request("GET", "/stream")
        assert began.wait(LIMIT_S)
        wire.connection.getresponse()
        wire.close()
        assert ended.wait(LIMIT_S)


def test_an_endpoint_is_asked_without_a_socket() -> None:
    async def slow(ctx: _core.Context) -> str:
        ctx.progress(1, None, None)
        return "slow"

    made = server(slow=coroutine(slow, context="ctx"))

    async def ask() -> tuple[int, bytes]:
        endpoint = made.endpoint(_core.HttpOptions(stateless=True, response="sse"))
        accept = b"application/json, text/event-stream"
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"accept", accept)]
        params = {"name": "slow", "_meta": {"progressToken": 1}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        reply = await endpoint.call("POST", "/mcp", headers, json.dumps(message).encode())
        pieces = b""
        while (piece := await reply.next()) is not None:
            pieces += piece
        with pytest.raises(ValueError):
            await endpoint.call("PO ST", "/mcp", [], b"")
        return reply.status, pieces

    status, body = asyncio.run(asyncio.wait_for(ask(), LIMIT_S))
    assert status == 200
    assert body.index(b"notifications/progress") < body.index(b'"slow"')


def test_a_call_without_a_socket_is_cancelled_with_its_awaitable() -> None:
    began, ended = threading.Event(), threading.Event()

    async def forever() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    made = server(forever=coroutine(forever))

    async def ask() -> None:
        endpoint = made.endpoint(_core.HttpOptions(stateless=True, response="json"))
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"accept", b"application/json")]
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "forever"}}
        asking = asyncio.ensure_future(endpoint.call("POST", "/mcp", headers, json.dumps(message).encode()))
        assert await asyncio.to_thread(began.wait, LIMIT_S)
        asking.cancel()
        assert await asyncio.to_thread(ended.wait, LIMIT_S)

    asyncio.run(ask())


def test_options_that_cant_be_are_refused() -> None:
    for wrong in (
        {"host": "example.com"},
        {"response": "loud"},
        {"grace_s": -1},
        {"limits": {"nothing": 1}},
        {"limits": {"body": 1.5}},
        {"tls": (b"x", b"y")},
        {"token_verifier": mirror, "port": 0},
    ):
        with pytest.raises(_core.UsageProblem):
            _core.HttpOptions(**wrong)  # type: ignore[arg-type]
    with pytest.raises(_core.UsageProblem):
        server().serve_http(_core.HttpOptions(port=0, path="mcp"))
