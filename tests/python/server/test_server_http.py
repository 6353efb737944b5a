"""The Python server on a port: contexts, questions, tokens, middleware, changes at run time, and failures."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from mcpace import (
    AcceptedElicitation,
    AccessToken,
    AuthSettings,
    Context,
    Elicit,
    Extension,
    MCPError,
    MCPServer,
    Resolve,
    Sample,
    TextResource,
    get_access_token,
)
from mcpace.types import CallToolResult, CreateMessageResult, SamplingMessage, TextContent
from support.http_client import HttpClient
from support.python_server import Client, served

ERAS = ("legacy", "modern")
ABLE = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


class Booking(BaseModel):
    seats: int
    name: str = "nobody"


def client(port: int, era: str, **more: Any) -> Client:
    made = Client(port, capabilities=ABLE, **more)
    if era == "legacy":
        made.begin()
    return made


# The context ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_progress_and_logs_come_before_the_result(era: str) -> None:
    server = MCPServer("t")

    @server.tool()
    async def work(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        await ctx.info({"found": 3}, logger_name="finder")
        await ctx.debug("too much")
        return "done"

    with served(server) as port:
        caller = client(port, era)
        if era == "legacy":
            caller.request("logging/setLevel", {"level": "info"})
        meta = {"progressToken": "p"} | ({"io.modelcontextprotocol/logLevel": "info"} if era == "modern" else {})
        reply = caller.request("tools/call", {"name": "work"}, **meta)
    assert reply["result"]["content"][0]["text"] == "done"
    assert [(message["method"], message["params"]) for message in caller.heard] == [
        ("notifications/progress", {"progressToken": "p", "progress": 1, "total": 2, "message": "half"}),
        ("notifications/message", {"level": "info", "logger": "finder", "data": {"found": 3}}),
    ]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"action": "accept", "content": {"seats": 2, "name": "Ada"}}, "2 for Ada"),
        ({"action": "decline"}, "decline"),
        ({"action": "cancel"}, "cancel"),
    ],
)
def test_the_user_is_asked(era: str, answer: dict[str, Any], said: str) -> None:
    server = MCPServer("t")

    @server.tool()
    async def book(ctx: Context) -> str:
        result = await ctx.elicit("How many?", Booking)
        return (
            f"{result.data.seats} for {result.data.name}" if isinstance(result, AcceptedElicitation) else result.action
        )

    asked = []

    def reply(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return answer

    with served(server) as port:
        caller = client(port, era, answers={"elicitation/create": reply})
        assert caller.text("book") == said
    [params] = asked
    assert params["message"] == "How many?"
    assert params["requestedSchema"]["required"] == ["seats"]


@pytest.mark.parametrize("era", ERAS)
def test_the_client_s_model_and_roots_are_asked(era: str) -> None:
    server = MCPServer("t")

    @server.tool()
    async def ask(ctx: Context) -> str:
        roots = await ctx.session.list_roots()
        message = SamplingMessage(role="user", content=TextContent(text="Hello"))
        said = await ctx.session.create_message([message], max_tokens=5)
        assert isinstance(said, CreateMessageResult)
        return f"{roots.roots[0].uri} {said.content.text} {said.model}"  # type: ignore[union-attr]

    content = {"type": "text", "text": "Hi"}
    answers: dict[str, Any] = {
        "roots/list": lambda params: {"roots": [{"uri": "file:///tmp"}]},
        "sampling/createMessage": lambda params: {"role": "assistant", "content": content, "model": "m"},
    }
    with served(server) as port:
        assert client(port, era, answers=answers).text("ask") == "file:///tmp Hi m"


def ask_name() -> Elicit[Booking]:
    return Elicit("Who?", Booking)


def ask_model() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text="Hi"))], max_tokens=5)


@pytest.mark.parametrize("era", ERAS)
def test_resolvers_ask(era: str) -> None:
    server = MCPServer("t")
    ran = []

    @server.tool()
    async def book(
        x: int,
        who: Annotated[Booking, Resolve(ask_name)],
        said: Annotated[CreateMessageResult, Resolve(ask_model)],
    ) -> str:
        ran.append(x)
        return f"{x} {who.seats} {said.content.text}"  # type: ignore[union-attr]

    answers: dict[str, Any] = {
        "elicitation/create": lambda params: {"action": "accept", "content": {"seats": 4}},
        "sampling/createMessage": lambda params: {
            "role": "assistant",
            "content": {"type": "text", "text": "Yes"},
            "model": "m",
        },
    }
    with served(server) as port:
        assert client(port, era, answers=answers).text("book", x="1") == "1 4 Yes"
    assert ran == [1]


QUESTIONS = ["Red?", "Blue?", "Blue?"]


def ask_differently() -> Elicit[Booking]:
    return Elicit(QUESTIONS.pop(0), Booking)


def test_an_answer_counts_for_its_own_question_alone() -> None:
    server, asked = MCPServer("t"), []

    @server.tool()
    async def book(who: Annotated[Booking, Resolve(ask_differently)]) -> int:
        return who.seats

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["message"])
        return {"action": "accept", "content": {"seats": len(asked)}}

    with served(server) as port:
        assert client(port, "modern", answers={"elicitation/create": answer}).text("book") == "2"
    assert asked == ["Red?", "Blue?"]


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_can_t_be_asked_is_told_so(era: str) -> None:
    server = MCPServer("t")

    @server.tool()
    async def book(ctx: Context) -> str:
        return (await ctx.elicit("How many?", Booking)).action

    with served(server) as port:
        caller = Client(port)
        if era == "legacy":
            caller.begin()
        reply = caller.request("tools/call", {"name": "book"})
    if era == "modern":
        assert reply["error"]["code"] == -32021
        assert "elicitation" in reply["error"]["data"]["requiredCapabilities"]
        assert caller.status == 400
    else:
        assert reply["result"]["isError"] is True


def test_headers_sessions_and_metadata_are_known() -> None:
    server = MCPServer("t")

    @server.tool()
    def known(ctx: Context) -> dict[str, Any]:
        assert ctx.headers is not None
        return {
            "header": ctx.headers["x-test"],
            "session": ctx.session_id,
            "meta": (ctx.meta or {}).get("mine"),
            "able": ctx.client_capabilities is not None and ctx.client_capabilities.roots is not None,
            "info": ctx.session.client_info and ctx.session.client_info.name,
            "method": ctx.request_context.method,
            "params": (ctx.request_context.params or {})["name"],
        }

    with served(server) as port:
        modern = client(port, "modern", headers={"X-Test": "a"})
        reply = modern.request("tools/call", {"name": "known"}, mine=1)["result"]["structuredContent"]
        legacy = client(port, "legacy", headers={"X-Test": "b"})
        other = legacy.call("known")["structuredContent"]
    same = {"able": True, "info": "test", "method": "tools/call", "params": "known"}
    assert reply == {"header": "a", "session": None, "meta": 1, **same}
    assert other == {"header": "b", "session": legacy.session, "meta": None, **same}


# Lifespan, tokens, middleware ----------------------------------------------------------------------------------------


def test_lifespan_is_entered_before_and_left_after() -> None:
    events = []

    @contextlib.asynccontextmanager
    async def lifespan(server: MCPServer[str]) -> AsyncIterator[str]:
        events.append(f"enter {server.name}")
        yield "state"
        events.append("leave")

    server = MCPServer("t", lifespan=lifespan)

    @server.tool()
    def state(ctx: Context[str]) -> str:
        events.append("call")
        return ctx.request_context.lifespan_context

    with served(server) as port:
        assert client(port, "modern").text("state") == "state"
    assert events == ["enter t", "call", "leave"]


class Verifier:
    async def verify_token(self, token: str) -> AccessToken | None:
        if not token.startswith("good"):
            return None
        return AccessToken(token=token, client_id="me", scopes=["read"], subject=token.removeprefix("good-"))


SETTINGS = AuthSettings(
    issuer_url="https://auth.example",  # type: ignore[arg-type]
    resource_server_url="http://127.0.0.1/mcp",  # type: ignore[arg-type]
    required_scopes=["read"],
    validate_token_resource=False,
)


def test_tokens_are_wanted_and_known() -> None:
    server = MCPServer(
        "t",
        token_verifier=Verifier(),
        auth=SETTINGS,
    )

    @server.tool()
    def plain() -> str:
        return str(get_access_token().subject)

    @server.tool()
    async def later(ctx: Context) -> str:
        return f"{get_access_token().subject} {ctx.client_id}"

    @server.resource("who://{x}")
    def resource(x: str) -> str:
        return f"{x} {get_access_token().subject}"

    with served(server) as port:
        caller = Client(port)
        caller.once("tools/list", {}, {})
        assert caller.status == 401
        ada, bob = (Client(port, headers={"Authorization": f"Bearer good-{name}"}) for name in ("ada", "bob"))
        for _ in range(3):
            assert ada.text("plain") == "ada"
            assert bob.text("plain") == "bob"
            assert bob.text("later") == "bob me"
        contents = ada.request("resources/read", {"uri": "who://x"})["result"]["contents"]
        assert contents[0]["text"] == "x ada"
    assert get_access_token() is None


def test_middleware_wraps_calls_outermost_first() -> None:
    seen = []

    def noting(name: str) -> Any:
        async def middleware(ctx: Any, call_next: Any) -> Any:
            seen.append(f"{name} {ctx.method}")
            result = await call_next(ctx)
            seen.append(f"{name} done")
            return result

        return middleware

    async def doubling(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "tools/call":
            ctx = replace(ctx, params={**ctx.params, "arguments": {"x": ctx.params["arguments"]["x"] * 2}})
        return await call_next(ctx)

    async def refusing(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "prompts/get":
            raise MCPError(-32050, "not today")
        return await call_next(ctx)

    server = MCPServer("t", middleware=[noting("a"), noting("b"), doubling, refusing])

    @server.tool()
    def twice(x: int) -> int:
        return x

    @server.tool()
    def fails(x: int) -> int:
        raise RuntimeError("secret")

    @server.prompt()
    def prompt() -> str:
        return "x"

    server.add_resource(TextResource(uri="a://b", text="text"))
    with served(server) as port:
        caller = client(port, "modern")
        assert caller.text("twice", x=2) == "4"
        assert seen == ["a tools/call", "b tools/call", "b done", "a done"]
        assert caller.call("twice", x="a")["isError"] is True
        assert caller.text("fails", x=1) == "Error executing tool fails"
        assert caller.request("prompts/get", {"name": "prompt"})["error"] == {"code": -32050, "message": "not today"}
        assert caller.request("resources/read", {"uri": "a://b"})["result"]["contents"][0]["text"] == "text"


@pytest.mark.parametrize("era", ERAS)
def test_middleware_has_a_say_in_lists(era: str) -> None:
    async def hiding(ctx: Any, call_next: Any) -> Any:
        result = await call_next(ctx)
        if ctx.method == "tools/list" and ctx.request.headers.get("x-test") != "admin":
            return {"tools": [tool for tool in result["tools"] if not tool["name"].startswith("admin")]}
        return result

    server = MCPServer("t", middleware=[hiding])
    for name in ("admin_drop", "list"):
        server.add_tool(lambda: "x", name=name, title="T")
    server.prompt(name="p")(lambda: "x")
    server.resource("a://{x}", name="r")(lambda x: x)
    with served(server) as port:
        caller, admin = client(port, era), client(port, era, headers={"X-Test": "admin"})
        listed = caller.request("tools/list")["result"]
        assert [tool["name"] for tool in listed["tools"]] == ["list"]
        assert [tool["name"] for tool in admin.request("tools/list")["result"]["tools"]] == ["admin_drop", "list"]
        assert caller.request("prompts/list")["result"]["prompts"][0]["name"] == "p"
        assert caller.request("resources/templates/list")["result"]["resourceTemplates"][0]["name"] == "r"
        assert caller.request("resources/list")["result"]["resources"] == []
    assert listed.get("resultType") == ("complete" if era == "modern" else None)


def test_middleware_that_crashes_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    async def crashing(ctx: Any, call_next: Any) -> Any:
        raise RuntimeError("secret")

    server = MCPServer("t", middleware=[crashing])

    @server.tool()
    def tool() -> str: ...

    with served(server) as port:
        reply = client(port, "modern").request("tools/call", {"name": "tool"})
    assert reply["error"] == {"code": -32603, "message": "Internal server error"}
    assert "secret" in caplog.text


def test_an_extension_wraps_tool_calls_and_is_declared() -> None:
    class Ext(Extension):
        identifier = "com.example/ext"

        async def intercept_tool_call(self, params: Any, ctx: Any, call_next: Any) -> Any:
            if params.arguments.get("x") == 0:
                return CallToolResult(content=[TextContent(text=f"no {params.name}")])
            return await call_next(ctx)

    server = MCPServer("t", extensions=[Ext()])

    @server.tool()
    def tool(x: int) -> int:
        return x

    with served(server) as port:
        caller = client(port, "modern")
        assert caller.text("tool", x=0) == "no tool"
        assert caller.text("tool", x=5) == "5"
        discovered = caller.request("server/discover")["result"]
    assert discovered["capabilities"]["extensions"] == {"com.example/ext": {}}


# Other paths, and other applications ---------------------------------------------------------------------------------


def test_routes_are_served_beside_the_endpoint_and_need_no_token() -> None:
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    server = MCPServer("t", token_verifier=Verifier(), auth=SETTINGS)

    @server.custom_route("/health/{part}", methods=["GET"])
    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"part": request.path_params["part"], "well": True})

    server.add_tool(lambda: "x", name="x")
    with served(server) as port:
        connection = HttpClient(port)
        status, _, body = connection.send("GET", "/health/db")
        assert (status, json.loads(body)) == (200, {"part": "db", "well": True})
        assert connection.send("GET", "/elsewhere")[0] == 404
        caller = Client(port)
        caller.once("tools/list", {}, {})
        assert caller.status == 401


def test_a_mounted_server_lives_with_its_host() -> None:
    events = []

    @contextlib.asynccontextmanager
    async def lifespan(server: MCPServer[None]) -> AsyncIterator[None]:
        events.append("enter")
        yield
        events.append("leave")

    server = MCPServer("t", lifespan=lifespan)
    server.add_tool(lambda: "pong", name="ping")
    with pytest.raises(RuntimeError, match="call streamable_http_app"):
        assert server.session_manager
    application = server.streamable_http_app(stateless_http=True, json_response=True)

    async def host() -> Any:
        async with server.session_manager.run():
            assert events == ["enter"]
            return await asked(
                application, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ping"}}
            )

    assert asyncio.run(host())["result"]["content"][0]["text"] == "pong"
    assert events == ["enter", "leave"]


def test_a_mounted_server_that_can_t_begin_tells_its_host() -> None:
    @contextlib.asynccontextmanager
    async def lifespan(server: MCPServer[None]) -> AsyncIterator[None]:
        raise RuntimeError("no database")
        yield

    server = MCPServer("t", lifespan=lifespan)
    server.asgi()

    async def host() -> None:
        async with server.session_manager.run():
            raise AssertionError("never")

    with pytest.raises(RuntimeError, match="no database"):
        asyncio.run(host())


async def asked(application: Any, message: dict[str, Any]) -> dict[str, Any]:
    """One request to an ASGI application, by hand."""
    sent: list[dict[str, Any]] = []
    names = {"content-type": "application/json", "accept": "application/json, text/event-stream", "host": "localhost"}
    headers = [(name.encode(), value.encode()) for name, value in names.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "query_string": b"", "root_path": ""}
    body = asyncio.Queue[dict[str, Any]]()
    body.put_nowait({"type": "http.request", "body": json.dumps(message).encode()})

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    await application(scope, body.get, send)
    reply: dict[str, Any] = json.loads(b"".join(event.get("body", b"") for event in sent[1:]))
    return reply


# While it runs -------------------------------------------------------------------------------------------------------


def test_definitions_come_and_go_while_the_server_runs() -> None:
    server = MCPServer("t")

    @server.tool()
    def first() -> str:
        return "first"

    with served(server) as port:
        caller = client(port, "modern")

        def names(kind: str, key: str = "name") -> list[str]:
            listed = caller.request(f"{kind}/list")["result"]
            return [entry[key] for entry in listed["tools" if kind == "tools" else kind.split("/")[0]]]

        server.add_tool(lambda: "second", name="second")
        server.add_resource(TextResource(uri="a://b", text="x"))
        server.prompt(name="p")(lambda: "x")
        assert names("tools") == ["first", "second"]
        assert caller.text("second") == "second"
        assert names("resources", "uri") == ["a://b"]
        assert names("prompts") == ["p"]
        server.remove_tool("first")
        server.remove_resource("a://b")
        server.remove_prompt("p")
        assert names("tools") == ["second"]
        assert names("resources") == names("prompts") == []
        assert caller.request("tools/call", {"name": "first"})["error"]["code"] == -32602


def test_two_servers_and_two_runs_of_one() -> None:
    server, other = MCPServer("one"), MCPServer("two")
    server.add_tool(lambda: "one", name="name")
    other.add_tool(lambda: "two", name="name")
    for _ in range(2):
        with served(server) as port, served(other) as other_port:
            assert client(port, "modern").call("name")["content"][0]["text"] == "one"
            assert client(other_port, "modern").call("name")["content"][0]["text"] == "two"


# Failures ------------------------------------------------------------------------------------------------------------


def test_a_tool_that_never_returns_is_given_up() -> None:
    server, ended = MCPServer("t", tool_timeout=0.2), threading.Event()

    @server.tool()
    async def forever() -> str:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return "never"

    @server.tool()
    def stuck() -> str:
        assert ended.wait(20)
        return "late"

    with served(server) as port:
        caller = client(port, "modern")
        for name in ("stuck", "forever"):
            reply = caller.request("tools/call", {"name": name})
            text = str(reply.get("error") or reply["result"])
            assert "0.2" in text or "time" in text, reply
    assert ended.wait(10)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_results_that_can_t_be_written_are_a_failure_and_nothing_worse(kind: str) -> None:
    server = MCPServer("t")

    def surrogate() -> str:
        return "\ud800"

    def wrong() -> dict[str, int]:
        return {"a": "b"}  # type: ignore[dict-item]

    def number() -> str:
        return 5  # type: ignore[return-value]

    for function in (surrogate, wrong, number):
        if kind == "async":
            server.add_tool(_coroutine(function))
        else:
            server.add_tool(function)
    with served(server) as port:
        caller = client(port, "modern")
        for name in ("surrogate", "wrong", "number", "wrong"):
            result = caller.call(name)
            assert result["isError"] is True
            assert result["content"][0]["text"] == f"Error executing tool {name}"


def _coroutine(function: Any) -> Any:
    async def later() -> Any:
        return function()

    later.__name__ = function.__name__
    later.__annotations__ = dict(function.__annotations__)
    return later


VARIABLE: ContextVar[str] = ContextVar("variable", default="nothing")


def test_context_variables_pass_into_tools_and_calls_don_t_share_them() -> None:
    server = MCPServer("t")

    @server.tool()
    def sync() -> str:
        before = VARIABLE.get()
        VARIABLE.set("changed")
        return before

    @server.tool()
    async def later() -> str:
        before = VARIABLE.get()
        VARIABLE.set("changed")
        return before

    token = VARIABLE.set("outer")
    try:
        with served(server) as port:
            caller = client(port, "modern")
            for name in ("sync", "later"):
                for _ in range(3):
                    assert caller.text(name) == "outer"
    finally:
        VARIABLE.reset(token)


def test_a_crash_is_logged_once_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    server = MCPServer("t")

    @server.tool()
    def crash(x: int) -> str:
        raise RuntimeError("the secret")

    with caplog.at_level(logging.INFO), served(server) as port:
        caller = client(port, "modern")
        assert caller.text("crash", x=1) == "Error executing tool crash"
        assert caller.text("crash", x="no").startswith("Error executing tool crash: 1 validation error")
    crashes = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(crashes) == 1
    assert "the secret" in caplog.text


def test_exits_and_interrupts_in_a_tool_end_the_call_alone() -> None:
    server = MCPServer("t")

    @server.tool()
    def leave() -> str:
        raise SystemExit(3)

    @server.tool()
    async def leave_later() -> str:
        raise KeyboardInterrupt

    @server.tool()
    def fine() -> str:
        return "fine"

    with served(server) as port:
        caller = client(port, "modern")
        for name in ("leave", "leave_later"):
            reply = caller.request("tools/call", {"name": name})
            assert "error" in reply or reply["result"]["isError"] is True
            assert caller.text("fine") == "fine"
