"""The endpoint under ASGI, served by uvicorn: sessions, streams, and clients that leave."""

from __future__ import annotations

import asyncio
import datetime
import http.client
import json
import socket
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from support.django_project import USER, server
from support.http_client import LEGACY, HttpClient

# isort: split
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application
from django.test import override_settings
from django.urls import path
from django.utils import timezone
from oauth2_provider.models import get_access_token_model, get_application_model
from rest_framework_services import ServiceSpec

from mcpace.django import DjangoOAuthToolkit, MCPServer

LIMIT_S = 60


@contextmanager
def serving(made: MCPServer) -> Iterator[int]:
    """By uvicorn, in a thread of this process; gives the port."""
    conf = types.ModuleType("conf")
    conf.urlpatterns = [path("mcp", made.async_urls), path("", made.async_metadata_urls)]  # type: ignore[attr-defined]
    with override_settings(ROOT_URLCONF=conf), socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(get_asgi_application(), log_level="warning", lifespan="off")
        host = uvicorn.Server(config)
        thread = threading.Thread(target=host.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            host.should_exit = host.force_exit = True
            thread.join(LIMIT_S)


class Session:
    """A client's session, with a connection for each request."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self._port, self._token = port, token
        self.id: str | None = None
        client = self.connect()
        client.initialize()
        self.id = client.session

    def connect(self, token: str | None = None) -> HttpClient:
        """A new connection of the session."""
        client = HttpClient(self._port, revision=LEGACY, session=self.id)
        if token or self._token:
            client.headers["Authorization"] = f"Bearer {token or self._token}"
        return client


def until(stream: http.client.HTTPResponse, text: bytes) -> bytes:
    """The first line of a stream that has a text."""
    return next(line for line in stream if text in line)


def test_a_session_has_a_stream() -> None:
    made = server()

    @made.tool()
    async def tell(session: str) -> str:
        await made.notify(session, "notifications/message", {"level": "info", "data": "hello"})
        return "told"

    with serving(made) as port:
        client = Session(port)
        assert client.id is not None
        stream = client.connect().listen()
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        told = client.connect().post("tools/call", {"name": "tell", "arguments": {"session": client.id}})
        assert json.loads(told.read())["result"]["structuredContent"] == {"result": "told"}
        assert b"hello" in until(stream, b"notifications/message")
        stream.close()


def test_a_call_ends_where_its_client_says_so() -> None:
    """The stream ends with it; and a client that only leaves may come back for its result."""
    made = server()
    began, ended = threading.Event(), threading.Event()

    async def waits(*, progress: Any) -> dict[str, int]:
        progress(1)
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    made.register_service_tool(name="waits", spec=ServiceSpec(service=waits, atomic=False, permission_classes=[]))
    with serving(made) as port:
        client = Session(port)
        call = client.connect().post("tools/call", {"name": "waits", "arguments": {}, "_meta": {"progressToken": 1}})
        assert b"notifications/progress" in until(call, b"data: {")
        assert began.wait(LIMIT_S)
        call.close()
        client.connect().notify("notifications/cancelled", {"requestId": 1})
        assert ended.wait(LIMIT_S)


def test_a_dropped_stream_cancels_the_call_where_there_is_no_session() -> None:
    """Nobody could come back for it (2026-07-28)."""
    made = server()
    ended = threading.Event()

    async def waits(*, progress: Any) -> dict[str, int]:
        progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    made.register_service_tool(name="waits", spec=ServiceSpec(service=waits, atomic=False, permission_classes=[]))
    meta = {
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "waits", "arguments": {}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    with serving(made) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        headers = {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "waits",
        }  # fmt: skip
        connection.request("POST", "/mcp", body, headers)
        stream = connection.getresponse()
        assert b"notifications/progress" in until(stream, b"data: {")
        stream.close()
        connection.close()
        assert ended.wait(LIMIT_S)


@pytest.fixture
def tokens() -> Iterator[dict[str, str]]:
    """Tokens of two users."""
    application = get_application_model().objects.create(
        name="app", client_type="public", authorization_grant_type="authorization-code", user=USER
    )
    expires = timezone.now() + datetime.timedelta(hours=1)
    bob, _ = User.objects.get_or_create(username="bob")
    for name, user in (("root", USER), ("bob", bob)):
        get_access_token_model().objects.create(
            token=f"of-{name}", scope="read", user=user, application=application, expires=expires
        )
    yield {"root": "of-root", "bob": "of-bob"}
    get_access_token_model().objects.all().delete()
    application.delete()


def test_a_session_is_its_owners(tokens: dict[str, str]) -> None:
    made = MCPServer("shop", auth=DjangoOAuthToolkit("http://127.0.0.1/mcp", ["http://127.0.0.1"]))
    spec = ServiceSpec(service=lambda *, user: {"user": user.username}, permission_classes=[])
    made.register_service_tool(name="who", spec=spec)
    with serving(made) as port:
        client = Session(port, tokens["root"])
        mine = client.connect().post("tools/call", {"name": "who", "arguments": {}})
        assert json.loads(mine.read())["result"]["structuredContent"] == {"user": "root"}
        assert client.connect(tokens["bob"]).post("tools/call", {"name": "who", "arguments": {}}).status == 404
        assert client.connect("of-nobody").post("tools/call", {"name": "who", "arguments": {}}).status == 401
        assert client.connect().post("ping", {}).status == 200
