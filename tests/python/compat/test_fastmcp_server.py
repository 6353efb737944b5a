"""FastMCP's names on the runtime: tools, contexts, state, dependencies, middleware, servers within servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest

from mcpace import _core
from mcpace.fastmcp import (
    Context,
    CurrentContext,
    CurrentHeaders,
    CurrentRequest,
    Depends,
    FastMCP,
    Middleware,
    Progress,
    ToolError,
    ToolResult,
    get_context,
    get_http_headers,
)
from mcpace.server.errors import RegistrationError, UnsupportedOption
from mcpace.server.running.lifespans import RunningLifespan
from mcpace.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from support.dialogue import Peer


@contextlib.contextmanager
def connected(server: FastMCP, revision: str = "2025-11-25", **options: Any) -> Iterator[Peer]:
    """A client of the server, over HTTP."""
    prepared = server.__mcpace__()
    with RunningLifespan(prepared):
        running = prepared.core.serve_http(_core.HttpOptions(port=0, **options))
        peer = Peer(running.port, revision)
        try:
            peer.open()
            yield peer
        finally:
            peer.close()
            running.stop()


def call(peer: Peer, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    line = {"method": "tools/call", "params": {"name": name, "arguments": arguments or {}}, **more}
    told = peer.ask(line)
    return {**told["answer"].get("result", told["answer"]), "ahead": told["ahead"]}


def text(result: dict[str, Any]) -> str:
    said: str = result["content"][0]["text"]
    return said


def test_tools_are_registered_with_and_without_parentheses() -> None:
    mcp = FastMCP("Demo", version="2")

    @mcp.tool
    def bare(word: str) -> str:
        """Says it"""
        return word

    @mcp.tool("named", tags={"b", "a"}, meta={"team": "x"})
    def other(number: int, times: int = 2) -> dict[str, int]:
        return {"product": number * times}

    @mcp.tool(output_schema=None)
    def plain() -> list[int]:
        return [1, 2]

    mcp.tool(lambda: 1, name="lambda")
    with connected(mcp) as peer:
        listed = {tool["name"]: tool for tool in peer.ask({"method": "tools/list"})["answer"]["result"]["tools"]}
        assert set(listed) == {"bare", "named", "plain", "lambda"}
        assert listed["bare"] == {
            "name": "bare",
            "title": "Bare",
            "description": "Says it",
            "inputSchema": {
                "additionalProperties": False,
                "type": "object",
                "properties": {"word": {"type": "string"}},
                "required": ["word"],
            },
            "outputSchema": {
                "type": "object",
                "properties": {"result": {"type": "string"}},
                "required": ["result"],
                "x-fastmcp-wrap-result": True,
            },
            "_meta": {"fastmcp": {"tags": []}},
        }
        assert listed["named"]["_meta"] == {"team": "x", "fastmcp": {"tags": ["a", "b"]}}
        assert "outputSchema" not in listed["plain"]
        wrapped = call(peer, "bare", {"word": "hi ✓"})
        assert (text(wrapped), wrapped["structuredContent"]) == ("hi ✓", {"result": "hi ✓"})
        assert wrapped["_meta"] == {"fastmcp": {"wrap_result": True}}
        product = call(peer, "named", {"number": 3})
        assert (text(product), product["structuredContent"]) == ('{"product":6}', {"product": 6})
        assert call(peer, "plain")["content"] == [{"type": "text", "text": "[1,2]"}]


def test_failures_are_told_as_fastmcp_tells_them() -> None:
    def tools(mcp: FastMCP) -> None:
        @mcp.tool
        def crashes() -> str:
            raise KeyError("details")

        @mcp.tool
        def foreseen() -> str:
            raise ToolError("for the model")

    open_, masked = FastMCP(), FastMCP(mask_error_details=True)
    tools(open_)
    tools(masked)
    with connected(open_) as peer:
        assert text(call(peer, "crashes")) == "Error calling tool 'crashes': 'details'"
        assert text(call(peer, "foreseen")) == "for the model"
        refused = call(peer, "foreseen", {"unknown": 1})
        assert refused["isError"] is True
    with connected(masked) as peer:
        assert text(call(peer, "crashes")) == "Error calling tool 'crashes'"
        assert text(call(peer, "foreseen")) == "for the model"


def test_a_tool_has_a_time_limit_of_its_own() -> None:
    mcp = FastMCP()

    @mcp.tool(timeout=0.05)
    async def waits() -> str:
        await asyncio.Event().wait()
        return "never"

    with connected(mcp) as peer:
        told = call(peer, "waits")
        assert "0.05" in json.dumps(told) or told.get("isError") or "error" in told


@pytest.fixture
def contextual() -> FastMCP:
    @contextlib.asynccontextmanager
    async def lifespan(server: FastMCP) -> Any:
        yield {"greeting": f"hello from {server.name}"}

    mcp = FastMCP("Life", lifespan=lifespan)
    closed: list[str] = []

    def opened() -> Iterator[str]:
        yield "opened"
        closed.append("closed")

    async def nested(base: str = Depends(opened)) -> str:
        return base + " twice"

    @mcp.tool
    async def speaks(ctx: Context) -> str:
        await ctx.info("a word")
        await ctx.report_progress(1, 2)
        return str(ctx.lifespan_context["greeting"])

    @mcp.tool
    async def remembers(value: str, ctx: Context) -> str:
        before = await ctx.get_state("kept")
        await ctx.set_state("kept", value)
        return f"{before} then {value}"

    @mcp.tool
    async def depends(word: str, one: str = Depends(opened), two: str = Depends(nested)) -> str:
        return f"{word} {one} {two} {len(closed)}"

    @mcp.tool
    def looks() -> str:
        return f"{get_context().fastmcp.name} {get_http_headers().get('x-example')} {'accept' in get_http_headers()}"

    @mcp.tool
    async def current(ctx: Any = CurrentContext(), headers: Any = CurrentHeaders()) -> str:  # noqa: B008
        return f"{ctx.request_id} {headers['x-example']}"

    @mcp.tool
    async def requested(request: Any = CurrentRequest()) -> str:  # noqa: B008
        client = request.client.host if request.client else "unknown"
        return f"{request.headers['X-Example']} {request.method} {client in ('127.0.0.1', 'unknown')}"

    @mcp.tool
    async def counts(progress: Progress = Progress()) -> str:  # noqa: B008
        await progress.set_total(2)
        await progress.increment()
        return str(progress.current)

    @mcp.resource("note://{path*}")
    async def note(path: str, ctx: Context) -> str:
        return f"{path} of {ctx.fastmcp.name}"

    @mcp.resource("note://fixed", tags={"t"})
    async def fixed(ctx: Context) -> str:
        return ctx.fastmcp.name

    @mcp.prompt
    async def asks(topic: str, ctx: Context) -> str:
        return f"{topic} for {ctx.fastmcp.name}"

    return mcp


def test_contexts_state_and_dependencies(contextual: FastMCP) -> None:
    with connected(contextual, response="sse") as peer:
        spoken = call(peer, "speaks")
        assert text(spoken) == "hello from Life"
        assert [message["method"] for message in spoken["ahead"]] == ["notifications/message"]
        assert text(call(peer, "remembers", {"value": "one"})) == "None then one"
        assert text(call(peer, "remembers", {"value": "two"})) == "one then two"
        # Made once a call, left at its end.
        assert text(call(peer, "depends", {"word": "w"})) == "w opened opened twice 0"
        assert text(call(peer, "depends", {"word": "w"})) == "w opened opened twice 1"
        assert text(call(peer, "looks")) == "Life an example False"
        assert text(call(peer, "current")).endswith(" an example")
        assert text(call(peer, "requested")) == "an example POST True"
        line = {"method": "tools/call", "params": {"name": "counts", "_meta": {"progressToken": 7}}}
        told = peer.ask(line)["ahead"]
        assert [one["params"] for one in told] == [{"progressToken": 7, "progress": 1, "total": 2}]
        for uri, said in {"note://a/b": "a/b of Life", "note://fixed": "Life"}.items():
            read = peer.ask({"method": "resources/read", "params": {"uri": uri}})
            assert read["answer"]["result"]["contents"][0]["text"] == said
        prompt = peer.ask({"method": "prompts/get", "params": {"name": "asks", "arguments": {"topic": "x"}}})
        assert prompt["answer"]["result"]["messages"][0]["content"]["text"] == "x for Life"
        # Injected values are no parameters.
        for tool in peer.ask({"method": "tools/list"})["answer"]["result"]["tools"]:
            assert set(tool["inputSchema"]["properties"]) <= {"word", "value"}, tool
    with connected(contextual, response="json") as other:
        assert text(call(other, "remembers", {"value": "x"})) == "None then x"


@dataclass
class Booking:
    day: str
    guests: int = 2


def test_forms_of_any_simple_type() -> None:
    mcp = FastMCP()
    kinds: dict[str, Any] = {"dataclass": Booking, "number": int, "choice": Literal["a", "b"], "nothing": None}

    @mcp.tool
    async def asks(kind: str, ctx: Context) -> str:
        answer = await ctx.elicit("Which?", response_type=kinds[kind])
        return f"{answer.action} {getattr(answer, 'data', None)!r}"

    def accepted(content: dict[str, Any]) -> dict[str, Any]:
        return {"answers": {"elicitation/create": {"action": "accept", "content": content}}}

    with connected(mcp, response="sse") as peer:
        booked = call(peer, "asks", {"kind": "dataclass"}, **accepted({"day": "x", "guests": 3}))
        assert text(booked) == "accept Booking(day='x', guests=3)"
        assert text(call(peer, "asks", {"kind": "number"}, **accepted({"value": 4}))) == "accept 4"
        assert text(call(peer, "asks", {"kind": "choice"}, **accepted({"value": "b"}))) == "accept 'b'"
        assert text(call(peer, "asks", {"kind": "nothing"}, **accepted({}))) == "accept {}"
        declined = {"answers": {"elicitation/create": {"action": "decline"}}}
        assert text(call(peer, "asks", {"kind": "number"}, **declined)) == "decline None"


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Visit:
    """When to come."""

    day: str


@pytest.mark.parametrize(
    ("kind", "content", "form"),
    [
        (str, {"value": "x"}, {"properties": {"value": {"title": "Value", "type": "string"}}, "required": ["value"]}),
        (
            Size,
            {"value": "large"},
            {
                "properties": {"value": {"title": "Size", "type": "string", "enum": ["small", "large"]}},
                "required": ["value"],
            },
        ),
        (
            Visit,
            {"day": "x"},
            {
                "properties": {"day": {"title": "Day", "type": "string"}},
                "required": ["day"],
                "title": "Visit",
                "description": "When to come.",
            },
        ),
    ],
    ids=["text", "enum", "dataclass"],
)
def test_forms_have_the_schemas_of_fastmcp(kind: Any, content: dict[str, Any], form: dict[str, Any]) -> None:
    mcp = FastMCP()

    @mcp.tool
    async def asks(ctx: Context) -> str:
        return (await ctx.elicit("Which?", response_type=kind)).action

    with connected(mcp, response="sse") as peer:
        answers = {"elicitation/create": {"action": "accept", "content": content}}
        told = call(peer, "asks", answers=answers)
        [asked] = [one for one in told["ahead"] if one["method"] == "elicitation/create"]
        assert asked["params"]["requestedSchema"] == {"type": "object", **form}
        assert text(told) == "accept"


def test_function_gets_the_answers_of_the_last_round_alone() -> None:
    mcp = FastMCP()

    def question(key: str, state: str | None = None) -> InputRequiredResult:
        form = ElicitRequestFormParams(message=key, requested_schema={"type": "object", "properties": {}})
        return InputRequiredResult(input_requests={key: ElicitRequest(params=form)}, request_state=state)

    @mcp.tool
    async def book(ctx: Context) -> str | InputRequiredResult:
        answers = ctx.input_responses
        if answers is None:
            return question("place")
        if "place" in answers:
            return question("day", "Oslo")
        return f"{ctx.request_state}, {sorted(answers)}"

    with connected(mcp, revision="2026-07-28") as peer:
        answers = {"elicitation/create": {"action": "accept", "content": {}}}
        assert text(call(peer, "book", answers=answers)) == "Oslo, ['day']"


def test_middleware_sees_and_changes_messages() -> None:
    seen: list[str] = []

    class Changes(Middleware):
        async def on_message(self, context: Any, call_next: Any) -> Any:
            seen.append(context.method)
            return await call_next(context)

        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            if context.message.name == "forbidden":
                raise ToolError("not for you")
            context.message.arguments["word"] += "!"
            result = await call_next(context)
            return ToolResult(content=result.content, structured_content={"result": "changed"})

        async def on_list_tools(self, context: Any, call_next: Any) -> Any:
            return [tool for tool in await call_next(context) if tool.name != "hidden"]

    mcp = FastMCP(middleware=[Changes()])

    @mcp.tool
    def echo(word: str) -> str:
        return word

    @mcp.tool
    def hidden(word: str) -> str:
        return word

    @mcp.tool
    def forbidden() -> str:
        return "never"

    with connected(mcp) as peer:
        listed = peer.ask({"method": "tools/list"})["answer"]["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["echo", "forbidden"]
        changed = call(peer, "echo", {"word": "a"})
        assert (text(changed), changed["structuredContent"]) == ("a!", {"result": "changed"})
        assert text(call(peer, "hidden", {"word": "b"})) == "b!"
        assert "not for you" in json.dumps(call(peer, "forbidden"))
    assert seen == ["tools/list", "tools/call", "tools/call", "tools/call"]


def test_a_server_within_a_server() -> None:
    inner, outer = FastMCP("Inner"), FastMCP("Outer")

    @inner.tool
    def forecast(city: str) -> str:
        return f"Rain in {city}"

    @inner.resource("weather://now")
    def now() -> str:
        return "Rain"

    @inner.resource("weather://{day}/noon")
    def noon(day: str) -> str:
        return f"Rain on {day}"

    @inner.prompt
    def dress(city: str) -> str:
        return f"What in {city}?"

    outer.mount(inner, namespace="sky")

    @inner.tool
    def later() -> str:
        return "came after"

    with connected(outer) as peer:
        assert text(call(peer, "sky_forecast", {"city": "Oslo"})) == "Rain in Oslo"
        assert text(call(peer, "sky_later")) == "came after"
        assert call(peer, "forecast", {"city": "Oslo"}).get("isError", True)
        for uri, said in {"weather://sky/now": "Rain", "weather://sky/monday/noon": "Rain on monday"}.items():
            read = peer.ask({"method": "resources/read", "params": {"uri": uri}})
            assert read["answer"]["result"]["contents"][0]["text"] == said
        prompt = peer.ask({"method": "prompts/get", "params": {"name": "sky_dress", "arguments": {"city": "Oslo"}}})
        assert prompt["answer"]["result"]["messages"][0]["content"]["text"] == "What in Oslo?"
    inner.add_middleware(Middleware())
    with pytest.raises(UnsupportedOption, match="middleware"):
        FastMCP().mount(inner)
    with pytest.raises(ValueError, match="itself"):
        outer.mount(outer)


def test_two_of_a_name() -> None:
    def twice(mcp: FastMCP) -> None:
        mcp.tool(lambda: "first", name="one")
        mcp.tool(lambda: "second", name="one")

    with pytest.raises(RegistrationError, match="Tool already exists: one"):
        twice(FastMCP(on_duplicate="error"))
    for policy, said in {"ignore": "first", "replace": "second", "warn": "second"}.items():
        mcp = FastMCP(on_duplicate=policy)  # type: ignore[arg-type]
        twice(mcp)
        with connected(mcp) as peer:
            assert text(call(peer, "one")) == said, policy


def test_what_there_is_not_is_refused_by_name() -> None:
    for option in ({"auth": object()}, {"providers": [object()]}, {"list_page_size": 5}):
        with pytest.raises(UnsupportedOption, match=next(iter(option))):
            FastMCP(**option)
    with pytest.raises(TypeError, match="nonsense"):
        FastMCP(nonsense=1)
    mcp = FastMCP()
    with pytest.raises(UnsupportedOption, match="version"):
        mcp.tool(version="2")
    for option in ({"version": "2"}, {"task": True}):
        with pytest.raises(UnsupportedOption, match=next(iter(option))):
            mcp.prompt(**option)
    with pytest.raises(UnsupportedOption, match="event_store"):
        mcp.http_app(event_store=object())
    with pytest.raises(ValueError, match="carrier pigeon"):
        mcp.run("carrier pigeon")


def test_in_process(contextual: FastMCP) -> None:
    asyncio.run(in_process(contextual))


async def in_process(contextual: FastMCP) -> None:
    result = await contextual.call_tool("remembers", {"value": "x"})
    assert isinstance(result, ToolResult)
    assert result.structured_content == {"result": "None then x"}
    with pytest.raises(ToolError, match="Missing required argument"):
        await contextual.call_tool("remembers", {})

    @contextual.tool
    def asks() -> InputRequiredResult:
        return InputRequiredResult(request_state="asked")

    asked = await contextual.call_tool("asks")
    assert isinstance(asked, InputRequiredResult) and asked.request_state == "asked"
