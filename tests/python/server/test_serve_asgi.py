"""``server.asgi()`` in hosts of ASGI: a stand-in that speaks the protocol by the letter, and Starlette's mounts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mcpace import Context, MCPServer, _core
from mcpace.server.running import asgi
from mcpace.server.running.embedded_endpoint import EmbeddedEndpoint
from mcpace.server.running.errors import SetupProblem
from mcpace.server.running.prepared import Prepared, prepare
from mcpace.server.running.settings import Settings
from support.asgi_host import LIMIT_S, Reply, ask, begin, call, modern, on_a_loop, run_lifespan, text

LEGACY = "2025-11-25"


class Events(list[str]):
    """Events that the server's functions report, from other threads."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()

    def say(self, what: str) -> None:
        with self._changed:
            self.append(what)
            self._changed.notify_all()

    async def until(self, what: str) -> None:
        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(lambda: what in self, LIMIT_S)

        assert await asyncio.to_thread(wait), self


def server(events: Events | None = None) -> MCPServer[Any]:
    said = Events() if events is None else events

    @contextlib.asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncIterator[dict[str, str]]:
        said.say("entered")
        yield {"city": "Oslo"}
        said.say("left")

    mcp = MCPServer("mounted", lifespan=lifespan)

    @mcp.tool()
    def greet(name: str) -> str:
        return f"Hello {name}"

    @mcp.tool()
    async def where(ctx: Context[Any, Any]) -> str:
        return str(ctx.request_context.lifespan_context["city"])

    @mcp.tool()
    async def steps(ctx: Context[Any, Any]) -> str:
        for step in range(3):
            await ctx.report_progress(step, 3)
        return "done"

    @mcp.tool()
    async def forever() -> str:
        said.say("begun")
        try:
            await asyncio.Event().wait()
        finally:
            said.say("cancelled")
        return "never"

    return mcp


@on_a_loop
async def test_calls() -> None:
    app = server().asgi()
    reply = await ask(app, call("greet", name="you"), **modern("greet"))
    assert (reply.status, text(reply)) == (200, "Hello you")
    assert reply.headers["content-type"] == "application/json"
    # In pieces, like the body of a slow client.
    reply = await ask(app, call("greet", name="you"), parts=7, **modern("greet"))
    assert text(reply) == "Hello you"


@on_a_loop
async def test_without_a_lifespan_from_the_host_it_is_entered_before_the_first_request() -> None:
    events = Events()
    app = server(events).asgi()
    assert events == []
    replies = await asyncio.gather(*(ask(app, call("where"), **modern("where")) for _ in range(5)))
    assert [text(reply) for reply in replies] == ["Oslo"] * 5
    assert events == ["entered"]


@on_a_loop
async def test_the_hosts_lifespan_is_the_servers() -> None:
    events = Events()
    app = server(events).asgi()
    async with run_lifespan(app) as said:
        assert said == ["lifespan.startup.complete"]
        assert events == ["entered"]
        assert text(await ask(app, call("where"), **modern("where"))) == "Oslo"
    assert said[-1] == "lifespan.shutdown.complete"
    assert events == ["entered", "left"]


@on_a_loop
async def test_a_lifespan_that_raises_is_told_the_host() -> None:
    @contextlib.asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncIterator[None]:
        raise ConnectionError("no database")
        yield

    app = MCPServer("broken", lifespan=lifespan).asgi()
    async with run_lifespan(app) as said:
        [failed] = said
    assert failed.startswith("lifespan.startup.failed")
    assert "no database" in failed
    assert "mcpace/server" not in failed


@on_a_loop
async def test_a_store_that_is_away_is_told_the_host() -> None:
    app = server().asgi(store="redis://127.0.0.1:1")
    async with run_lifespan(app) as said:
        [failed] = said
    assert failed.startswith("lifespan.startup.failedRedis at 127.0.0.1:1 can't be reached")
    # A host that ignores the failure, or has no lifespan protocol.
    reply = await ask(app, call("greet", name="you"), **modern("greet"))
    assert (reply.status, reply.body) == (503, "the endpoint can't begin at the moment")


@on_a_loop
async def test_who_comes_while_it_begins_has_the_one_attempts_outcome(caplog: pytest.LogCaptureFixture) -> None:
    may_end, outcomes = threading.Event(), [_core.EnvironmentProblem("the store is away")] * 2
    attempts = 0

    def make() -> Prepared:
        nonlocal attempts
        attempts += 1
        assert may_end.wait(LIMIT_S)
        if outcomes:
            raise outcomes.pop()
        return prepare(server())

    hosted = EmbeddedEndpoint(make, Settings())
    waiting = [asyncio.ensure_future(hosted.begin_on_loop()) for _ in range(50)]
    await asyncio.sleep(0)
    # The attempt is shared by all waiting requests, although the cancelled one was the first.
    waiting[0].cancel()
    may_end.set()
    async with asyncio.timeout(LIMIT_S):
        ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(ended[0], asyncio.CancelledError)
    assert {str(one) for one in ended[1:]} == {"the store is away"}
    assert attempts == 1
    with pytest.raises(SetupProblem):
        await asyncio.to_thread(hosted.begin)
    begun = await hosted.begin_on_loop()
    assert begun is hosted.begun is await asyncio.to_thread(hosted.begin)
    assert (attempts, caplog.messages) == (3, ["the MCP endpoint can't begin: the store is away"])
    await asyncio.to_thread(hosted.end)
    assert hosted.begun is None


@on_a_loop
async def test_sessions_and_streams() -> None:
    app = server().asgi()
    information = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    reply = await ask(app, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": information})
    session = {"mcp_session_id": reply.headers["mcp-session-id"], "mcp_protocol_version": LEGACY}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    params = {"name": "steps", "arguments": {}, "_meta": {"progressToken": 1}}
    reply = await ask(app, message | {"params": params}, **session)
    assert reply.headers["content-type"] == "text/event-stream"
    events = [json.loads(line[6:]) for line in reply.body.splitlines() if line.startswith("data: {")]
    assert [event["params"]["progress"] for event in events[:-1]] == [0, 1, 2]
    assert events[-1]["result"]["content"][0]["text"] == "done"
    assert (
        await ask(app, message | {"params": params}, mcp_session_id="0" * 32, mcp_protocol_version=LEGACY)
    ).status == 404


@on_a_loop
async def test_a_client_that_leaves_cancels_its_call() -> None:
    events = Events()
    app = server(events).asgi()
    reply = Reply()
    running = asyncio.ensure_future(begin(app, reply, call("forever"), **modern("forever")))
    await events.until("begun")
    reply.gone.set()
    await running
    await events.until("cancelled")
    assert reply.status == 0


@pytest.mark.parametrize(
    ("root", "path", "status"),
    [("", "/mcp", 200), ("/tools", "/mcp", 200), ("/tools", "", 200), ("/tools", "/", 200), ("/tools", "/else", 404)],
)
@on_a_loop
async def test_it_is_mounted_under_any_path(root: str, path: str, status: int) -> None:
    reply = await ask(server().asgi(), call("greet", name="you"), root=root, path=path, **modern("greet"))
    assert reply.status == status


@on_a_loop
async def test_checks_and_limits_hold() -> None:
    app = server().asgi(max_request_body_size=500)
    assert (await ask(app, call("greet", name="you"), host="evil.example", **modern("greet"))).status == 403
    assert (await ask(app, call("greet", name="x" * 600), parts=3, **modern("greet"))).status == 413
    known = server().asgi(transport_security={"allowed_hosts": ["mcp.example"]})
    assert (await ask(known, call("greet", name="you"), host="mcp.example", **modern("greet"))).status == 200


@on_a_loop
async def test_websockets_are_closed_and_other_scopes_refused() -> None:
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    app = server().asgi()
    await app({"type": "websocket"}, None, send)
    assert said[0]["type"] == "websocket.close"
    with pytest.raises(ValueError, match="no ASGI scope"):
        await app({"type": "smoke"}, None, send)


@on_a_loop
async def test_starlette_mounts_it() -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app = Starlette(routes=[Mount("/tools", app=server().asgi())])
    assert text(await ask(app, call("greet", name="you"), path="/tools/mcp", **modern("greet"))) == "Hello you"
    assert text(await ask(app, call("greet", name="you"), path="/tools/", **modern("greet"))) == "Hello you"


@on_a_loop
async def test_an_option_that_there_is_not_is_named() -> None:
    with pytest.raises(TypeError, match="smoke: there is no such option"):
        asgi(server(), smoke=True)


@on_a_loop
async def test_a_client_that_leaves_half_way_through_its_request_is_no_error() -> None:
    messages = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [(b"host", b"localhost")]}
    async with asyncio.timeout(LIMIT_S):
        await asgi(server())(scope, receive, send)
    assert not messages and not sent
