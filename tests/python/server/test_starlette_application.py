"""``streamable_http_app()`` and ``sse_app()``: Starlette applications that behave like those of the official SDK."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

import mcpace.server.running
from mcpace import AccessToken, AuthSettings, MCPServer, UnsupportedOption
from mcpace.fastmcp import FastMCP
from support.asgi_host import Reply, ask, begin, call, modern, on_a_loop, run_lifespan, text

GREET = call("greet", name="you")


def server(**options: Any) -> MCPServer[Any]:
    mcp = MCPServer("web", **options)

    @mcp.tool()
    def greet(name: str) -> str:
        return f"Hello {name}"

    @mcp.custom_route("/health", methods=["GET"])
    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    return mcp


async def get(app: Any, path: str, **more: Any) -> Reply:
    return await ask(app, None, path=path, method="GET", **more)


@pytest.mark.parametrize("way", ["streamable_http_app", "sse_app", "asgi"])
@on_a_loop
async def test_custom_routes_are_served(way: str) -> None:
    app = getattr(server(), way)()
    reply = await get(app, "/health")
    assert (reply.status, reply.body) == (200, '{"status":"ok"}')
    assert (await get(app, "/elsewhere")).status == 404


@on_a_loop
async def test_custom_routes_of_fastmcp_are_served() -> None:
    mcp = FastMCP("web")

    @mcp.custom_route("/health", methods=["GET"])
    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    app = mcp.http_app(path="/api")
    assert (await get(app, "/health")).status == 200
    assert (await ask(app, GREET, path="/api", **modern("greet"))).status == 200
    assert isinstance(app, Starlette) and app.lifespan is not None


@on_a_loop
async def test_a_custom_route_runs_where_the_lifespan_was_entered() -> None:
    loops = []

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        loops.append(asyncio.get_running_loop())
        yield

    mcp = MCPServer("web", lifespan=lifespan)

    @mcp.custom_route("/loop", methods=["POST"])
    async def loop(request: Request) -> JSONResponse:
        loops.append(asyncio.get_running_loop())
        return JSONResponse(json.loads(await request.body()))

    for app in (mcp.streamable_http_app(), mcp.asgi()):
        assert (await ask(app, ["echo"], path="/loop")).body == '["echo"]'
    assert len(loops) == 4 and len(set(loops)) == 1


@pytest.mark.parametrize(("path", "status"), [("/mcp", 200), ("/", 404), ("/else", 404)])
@on_a_loop
async def test_the_endpoint_is_at_its_path_alone(path: str, status: int) -> None:
    assert (await ask(server().streamable_http_app(), GREET, path=path, **modern("greet"))).status == status


@on_a_loop
async def test_the_path_is_the_constructor_s_where_the_method_has_none() -> None:
    mcp = server(streamable_http_path="/api")
    assert (await ask(mcp.streamable_http_app(), GREET, path="/api", **modern("greet"))).status == 200
    mcp.settings.streamable_http_path = "/changed"
    assert (await ask(mcp.streamable_http_app(), GREET, path="/changed", **modern("greet"))).status == 200
    app = mcp.streamable_http_app(streamable_http_path="/given")
    assert (await ask(app, GREET, path="/given", **modern("greet"))).status == 200


@pytest.mark.parametrize(
    ("options", "headers", "status"),
    [
        ({}, {"host": "localhost:8000"}, 200),
        ({}, {"host": "evil.example"}, 421),
        ({}, {"host": "127.0.0.1:80@evil.example"}, 421),
        ({}, {"origin": "http://localhost:3000"}, 200),
        ({}, {"origin": "https://evil.example"}, 403),
        ({"host": "0.0.0.0"}, {"host": "mcp.example", "origin": "https://app.example"}, 200),
        ({"transport_security": {"allowed_hosts": ["mcp.example"]}}, {"host": "mcp.example"}, 200),
        ({"transport_security": {"allowed_hosts": ["mcp.example"]}}, {"host": "mcp.example:1"}, 421),
        ({"transport_security": {"allowed_hosts": ["mcp.example:*"]}}, {"host": "mcp.example:1"}, 200),
        ({"transport_security": {"allowed_hosts": ["mcp.example:*"]}}, {"host": "mcp.example:x"}, 421),
        ({"transport_security": {"allowed_hosts": ["mcp.example"]}}, {"host": "localhost"}, 421),
        ({"transport_security": {"enable_dns_rebinding_protection": False}}, {"host": "evil.example"}, 200),
    ],
)
@on_a_loop
async def test_hosts_and_origins_are_refused_as_the_sdk_refuses_them(
    options: dict[str, Any], headers: dict[str, str], status: int
) -> None:
    app = server().streamable_http_app(**options)
    assert (await ask(app, GREET, **modern("greet") | headers)).status == status
    # The constructor of mcp 1.x has the same keywords.
    app = server(**options).streamable_http_app()
    assert (await ask(app, GREET, **modern("greet") | headers)).status == status


@on_a_loop
async def test_it_is_a_starlette_application() -> None:
    class Marking:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def marked(event: Any) -> None:
                if event["type"] == "http.response.start":
                    event = {**event, "headers": [*event["headers"], (b"x-marked", b"yes")]}
                await send(event)

            await self.app(scope, receive, marked)

    async def page(request: Request) -> JSONResponse:
        return JSONResponse("page")

    app = server().streamable_http_app()
    assert isinstance(app, Starlette)
    assert [route.path for route in app.routes] == ["/mcp", "/health"]
    app.add_middleware(Marking)
    app.router.routes.append(Route("/page", page))
    assert (await get(app, "/page")).headers["x-marked"] == "yes"
    reply = await ask(app, GREET, **modern("greet"))
    assert (text(reply), reply.headers["x-marked"]) == ("Hello you", "yes")


@on_a_loop
async def test_the_host_s_lifespan_is_the_servers() -> None:
    events = []

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        events.append("entered")
        yield
        events.append("left")

    inner = server(lifespan=lifespan).streamable_http_app(streamable_http_path="/")
    hosts = [
        Starlette(routes=[Mount("/tools", app=inner)], lifespan=inner.lifespan),
        Starlette(routes=[Mount("/tools", app=inner)], lifespan=inner.router.lifespan_context),
        inner,
    ]
    for host in hosts:
        events.clear()
        async with run_lifespan(host):
            assert events == ["entered"]
            path = "/" if host is inner else "/tools/"
            assert (await ask(host, GREET, path=path, **modern("greet"))).status == 200
        assert events == ["entered", "left"]


@on_a_loop
async def test_a_host_s_middleware_wraps_the_mounted_endpoint() -> None:
    seen = []

    class Seeing:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            seen.append(scope["path"])
            await self.app(scope, receive, send)

    host = Starlette(routes=[Mount("/tools", app=server().streamable_http_app())], middleware=[Middleware(Seeing)])
    assert (await ask(host, GREET, path="/tools/mcp", **modern("greet"))).status == 200
    assert seen == ["/tools/mcp"]


@on_a_loop
async def test_the_metadata_of_a_protected_server_is_published() -> None:
    class Verifier:
        async def verify_token(self, token: str) -> AccessToken | None:
            return None

    auth = AuthSettings(issuer_url="https://auth.example", resource_server_url="https://mcp.example/mcp")
    app = server(token_verifier=Verifier(), auth=auth).streamable_http_app()
    reply = await get(app, "/.well-known/oauth-protected-resource/mcp")
    assert (reply.status, json.loads(reply.body)["resource"]) == (200, "https://mcp.example/mcp")
    assert (await ask(app, GREET, **modern("greet"))).status == 401
    assert (await get(app, "/health")).status == 200


@pytest.mark.parametrize(
    ("options", "root", "told"),
    [
        ({}, "", "/messages/?"),
        ({}, "/github", "/github/messages/?"),
        ({"sse_path": "/events", "message_path": "/post/"}, "", "/post/?"),
    ],
)
@on_a_loop
async def test_the_streams_of_2024_11_05_tell_where_messages_go(options: dict[str, str], root: str, told: str) -> None:
    app = server().sse_app(**options)
    host: Any = Starlette(routes=[Mount(root, app=app)]) if root else app
    reply = Reply()
    path = root + options.get("sse_path", "/sse")
    listening = asyncio.ensure_future(begin(host, reply, None, path=path, method="GET"))
    async with asyncio.timeout(30):
        await reply.spoke.wait()
    assert f"data: {told}" in reply.body
    address = reply.body.partition("data: ")[2].splitlines()[0]
    path, _, query = address.partition("?")
    posted = await ask(host, {"jsonrpc": "2.0", "method": "notifications/initialized"}, path=path, query=query)
    assert posted.status == 202
    reply.gone.set()
    await listening


@on_a_loop
async def test_a_proxy_s_prefix_is_told_where_messages_go() -> None:
    app = server(mount_path="/proxied").sse_app()
    reply = Reply()
    listening = asyncio.ensure_future(begin(app, reply, None, path="/sse", method="GET"))
    async with asyncio.timeout(30):
        await reply.spoke.wait()
    assert "data: /proxied/messages/?" in reply.body
    reply.gone.set()
    await listening


def test_without_starlette_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette.routing", None)
    monkeypatch.delitem(sys.modules, "mcpace.server.running.starlette_application", raising=False)
    monkeypatch.delattr(mcpace.server.running, "starlette_application", raising=False)
    with pytest.raises(UnsupportedOption, match=r"pip install 'mcpace\[routes\]'.*server.asgi\(\)"):
        MCPServer("web").streamable_http_app()
