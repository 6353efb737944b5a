"""Incomplete ASGI applications beside the endpoint, and the names of failing objects in the log."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from mcpace import AccessToken, AuthSettings, MCPServer
from support.http_client import HttpClient
from support.python_server import Client, served

LIMIT_S = 20


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_response_ends_though_somebody_still_waits_for_the_client(is_finished: bool) -> None:
    waiting: list[asyncio.Task[Any]] = []
    told: list[str] = []
    over = threading.Event()
    may_end = asyncio.Event()

    async def disconnected(receive: Any) -> None:
        told.append((await receive())["type"])
        over.set()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "http.request"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/end":
            may_end.set()
            await send({"type": "http.response.body", "body": b""})
            return
        await send({"type": "http.response.body", "body": b"some", "more_body": True})
        # From here on the application waits for the end of an endless body.
        waiting.append(asyncio.ensure_future(disconnected(receive)))
        await may_end.wait()
        if is_finished:
            await send({"type": "http.response.body", "body": b"more"})

    with served(MCPServer("t"), asgi=application) as port:
        connection = HttpClient(port)
        response = connection.open("GET", path="/other")
        assert response.read(4) == b"some"
        with HttpClient(port) as other:
            assert other.send("GET", "/end")[0] == 200
        assert response.read() == (b"more" if is_finished else b"")
        # The response is complete, although the client is still connected.
        assert over.wait(LIMIT_S)
        assert told == ["http.disconnect"]
        connection.close()


def test_the_log_says_what_failed(caplog: pytest.LogCaptureFixture) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("the application's own")

    class Verifier:
        async def verify_token(self, token: str) -> AccessToken | None:
            raise RuntimeError("the verifier's own")

    settings = AuthSettings.model_validate(
        {"issuer_url": "https://auth.example", "resource_server_url": "https://mcp.example/mcp"}
    )
    server = MCPServer("t", token_verifier=Verifier(), auth=settings)
    with served(server, asgi=application) as port:
        with HttpClient(port) as connection:
            assert connection.send("GET", "/other")[0] == 500
        caller = Client(port, headers={"Authorization": "Bearer x"})
        caller.once("tools/list", {}, {})
        assert caller.status == 503
    said = [(record.getMessage(), str(record.exc_info and record.exc_info[1])) for record in caplog.records]
    assert ("the ASGI application beside the endpoint failed", "the application's own") in said
    assert ("the token verifier failed", "the verifier's own") in said


@pytest.mark.parametrize("kind", ["tool", "resource"])
def test_a_function_that_is_cut_off_is_no_crash(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    server = MCPServer("t")

    async def cut_off() -> str:
        # Cancelled, as all tasks are at the end of the loop.
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()
        return "never"

    server.tool()(cut_off)
    server.resource("cut://off")(cut_off)
    with caplog.at_level(logging.INFO), served(server) as port:
        caller = Client(port)
        if kind == "tool":
            reply = caller.request("tools/call", {"name": "cut_off", "arguments": {}})
            assert reply["result"]["isError"] is True
            assert reply["result"]["content"][0]["text"] == "the call was cancelled"
        else:
            assert "error" in caller.request("resources/read", {"uri": "cut://off"})
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
