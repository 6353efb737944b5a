"""The parts of mcpace.fastmcp that no client sees: its client, applications, foreign objects, refusals."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from mcpace.client import Client as PlainClient
from mcpace.fastmcp import (
    Client,
    Context,
    FastMCP,
    HttpResource,
    MCPError,
    Message,
    MiddlewareContext,
    MultiAuth,
    NotFoundError,
    PromptsAsTools,
    ResourceError,
    ResourcesAsTools,
    Tool,
    ToolError,
    prompt,
    resource,
    tool,
)
from mcpace.server.errors import RegistrationError, UnsupportedOption
from mcpace.server.registration.extension import Extension, ToolBinding
from mcpace.types import CreateMessageResult, InputRequiredResult, TextContent
from support.adoption import ROOT, SDKS, interpreter

FASTMCP_4 = next(sdk for sdk in SDKS if sdk.name == "fastmcp-4")
PAGE = (ROOT / "docs" / "fastmcp.md").read_text()


def test_the_page_s_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    module = types.ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    exec(compile(code, "docs/fastmcp.md", "exec"), module.__dict__)
    asyncio.run(module.test_add())


def test_the_client_in_memory() -> None:
    mcp = FastMCP("memory")

    @mcp.tool
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool
    def fails() -> str:
        raise ToolError("no")

    @mcp.resource("data://x")
    def data() -> str:
        return "x"

    @mcp.prompt
    def ask(count: int) -> str:
        return f"{count + 1}"

    async def used() -> None:
        async with Client(mcp) as client:
            assert client.is_connected()
            assert await client.ping()
            assert [one.name for one in await client.list_tools()] == ["add", "fails"]
            result = await client.call_tool("add", {"a": 1, "b": 2})
            assert (result.data, result.structured_content) == (3, {"result": 3})
            with pytest.raises(ToolError, match=r"^no$"):
                await client.call_tool("fails")
            assert (await client.call_tool("fails", raise_on_error=False)).is_error
            assert [one.text for one in await client.read_resource("data://x")] == ["x"]
            filled = await client.get_prompt("ask", {"count": 1})
            assert filled.messages[0].content.text == "2"
        assert not client.is_connected()

    asyncio.run(used())
    with pytest.raises(UnsupportedOption, match="roots"):
        Client(mcp, roots=["file:///"])


def test_the_applications_of_a_server() -> None:
    pytest.importorskip("starlette")
    from starlette.middleware import Middleware
    from starlette.responses import PlainTextResponse

    class Marks:
        def __init__(self, app: Any, mark: str) -> None:
            self.app, self.mark = app, mark

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await self.app(scope, receive, send)

    child, mcp = FastMCP("child"), FastMCP("routes")

    @child.custom_route("/health", methods=["GET"])
    async def health(request: Any) -> Any:
        return PlainTextResponse("well")

    mcp.mount(child, namespace="c")
    app = mcp.http_app(
        "/api", middleware=[Middleware(Marks, mark="m")], stateless_http=True, allowed_hosts=["x.example"]
    )
    assert callable(app.lifespan)
    assert [route.path for route in app.routes] == ["/api", "/health"]
    assert [one.kwargs for one in app.user_middleware] == [{"mark": "m"}]
    assert mcp.http_app(transport="sse", path="/events").routes[0].path == "/events"


def test_visibility_follows_later_rules_and_later_tools() -> None:
    mcp, outer = FastMCP("inner"), FastMCP("outer")
    outer.mount(mcp, namespace="in")

    def names(server: FastMCP) -> list[str]:
        return sorted(server.registry.tools)

    mcp.tool(lambda: 1, name="a", tags={"x"})
    mcp.tool(lambda: 1, name="b", tags={"y"})
    mcp.disable(tags={"x"})
    assert (names(mcp), names(outer)) == (["b"], ["in_b"])
    mcp.tool(lambda: 1, name="c", tags={"x", "y"})
    assert names(mcp) == ["b"]
    mcp.enable(names={"c"})
    assert (names(mcp), names(outer)) == (["b", "c"], ["in_b", "in_c"])
    mcp.enable(tags={"x"}, only=True)
    assert (names(mcp), names(outer)) == (["a", "c"], ["in_a", "in_c"])
    mcp.disable(components={"tool"})
    assert names(mcp) == []
    with pytest.raises(TypeError, match="colour"):
        mcp.disable(colour="red")


def test_functions_that_decorators_marked() -> None:
    @tool("named", tags={"t"})
    def one() -> str:
        return "1"

    @resource("data://{x}", mime_type="text/markdown")
    def two(x: str) -> str:
        return x

    @prompt
    def three() -> str:
        return "3"

    mcp = FastMCP("marked", tools=[one])
    mcp.add_resource(two)
    mcp.add_prompt(three)
    assert list(mcp.registry.tools) == ["named"]
    assert mcp.registry.tools["named"].listed()["_meta"] == {"fastmcp": {"tags": ["t"]}}
    assert mcp.registry.templates["data://{x}"].mime_type == "text/markdown"
    assert list(mcp.registry.prompts) == ["three"]
    assert one() == "1"


def test_an_extension() -> None:
    class Loud(Extension):
        identifier = "com.example/loud"

        def tools(self) -> list[ToolBinding]:
            return [ToolBinding(lambda: "LOUD", kwargs={"name": "shout"})]

    mcp = FastMCP("extended")
    mcp.add_extension(Loud())
    assert list(mcp.registry.tools) == ["shout"]
    with pytest.raises(UnsupportedOption, match=r"mcpace\.Extension"):
        mcp.add_extension(object())


def test_the_client_s_model_is_asked() -> None:
    mcp = FastMCP("asks")

    @mcp.tool
    async def summary(text: str, ctx: Context) -> str:
        answer = await ctx.sample(f"Shorten {text}", system_prompt="Be short.", max_tokens=7)
        return f"{answer.text} {len(answer.history)}"

    @mcp.tool
    async def more(ctx: Context) -> str:
        return str((await ctx.sample("x", result_type=int)).result)

    seen: list[Any] = []

    async def model(context: Any, params: Any) -> CreateMessageResult:
        seen.append((params.messages[0].content.text, params.system_prompt, params.max_tokens))
        return CreateMessageResult(role="assistant", content=TextContent(text="short"), model="m")

    async def used() -> None:
        async with PlainClient(mcp, sampling_callback=model) as client:
            assert (await client.call_tool("summary", {"text": "long"})).content[0].text == "short 2"
            refused = await client.call_tool("more")
            assert refused.is_error and "result_type" in refused.content[0].text

    asyncio.run(used())
    assert seen[-1] == ("Shorten long", "Be short.", 7)


def test_rounds_are_refused_where_the_client_s_revision_has_none() -> None:
    mcp = FastMCP("rounds")

    @mcp.tool
    def asks(ctx: Context) -> InputRequiredResult:
        return InputRequiredResult(request_state="x")

    async def used() -> None:
        async with PlainClient(mcp, mode="legacy") as client:
            with pytest.raises(MCPError, match="only exists at MCP 2026-07-28"):
                await client.call_tool("asks")

    asyncio.run(used())


def test_tools_run_as_tasks() -> None:
    mcp = FastMCP("works", tasks=True)

    @mcp.tool
    async def works(count: int, ctx: Context) -> str:
        await ctx.report_progress(1, count, "begun")
        return f"{count} {ctx.is_background_task}"

    @mcp.tool(task=False)
    def at_once(ctx: Context) -> str:
        return str(ctx.is_background_task)

    async def used() -> None:
        async with PlainClient(mcp, tasks=True) as client:
            assert (await client.call_tool("works", {"count": 2})).content[0].text == "2 True"
            assert (await client.call_tool("at_once")).content[0].text == "False"
        async with PlainClient(mcp) as client:
            assert (await client.call_tool("works", {"count": 2})).content[0].text == "2 False"

    asyncio.run(used())


def test_calls_within_the_process() -> None:
    mcp = FastMCP("here", mask_error_details=True)

    @mcp.resource("data://x", meta={"m": 1})
    def data() -> str:
        return "x"

    @mcp.prompt
    def says() -> list[Any]:
        return ["one", Message("two", role="assistant")]

    async def used() -> None:
        result = await mcp.read_resource("data://x")
        assert (result.contents[0].content, result.contents[0].meta) == ("x", {"m": 1})
        with pytest.raises(NotFoundError):
            await mcp.read_resource("data://y")
        assert [one.role for one in (await mcp.render_prompt("says")).messages] == ["user", "assistant"]
        assert (await mcp.get_prompt("says")).name == "says"
        assert await mcp.get_tool("none") is None

    asyncio.run(used())


def test_failed_fetch_of_a_resource_names_the_cause_alone() -> None:
    mcp = FastMCP("x")
    mcp.add_resource(HttpResource(uri="data://x", url="http://127.0.0.1:1/"))
    with pytest.raises(ResourceError, match=r"Error reading resource 'data://x': \[Errno \d+\] Connection refused$"):
        asyncio.run(mcp.read_resource("data://x"))


async def unlocks(ctx: Context) -> None:
    await ctx.enable_components(tags={"premium"})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda mcp: mcp.add_provider(object()), "mount"),
        (lambda mcp: mcp.add_transform(object()), "where tools are registered"),
        (lambda mcp: MultiAuth(verifiers=[]), "asks each verifier"),
        (lambda mcp: mcp.add_transform(ResourcesAsTools(mcp)), r"read_resource\(\)"),
        (lambda mcp: mcp.add_transform(PromptsAsTools(mcp)), r"render_prompt\(\)"),
        (lambda mcp: FastMCP.from_openapi({}), "mcpace serve"),
        (lambda mcp: mcp.mount(object()), "import FastMCP from mcpace.fastmcp"),
        (lambda mcp: mcp.mount(FastMCP(), prefix="x"), "prefix"),
        (lambda mcp: mcp.tool(app=True), "ui"),
        (lambda mcp: mcp.tool(unlocks), "auth= checks"),
        (lambda mcp: Tool.from_tool(mcp), "calls the other"),
        (lambda mcp: mcp.resource("x://y", version="1"), "another name"),
        (lambda mcp: mcp.enable(version="1"), "another name"),
        (lambda mcp: mcp.add_tool(3), "function"),
        (lambda mcp: mcp.add_resource(3), "Resource"),
        (lambda mcp: mcp.add_template(3), "ResourceTemplate"),
        (lambda mcp: mcp.add_prompt(3), "function"),
        (lambda mcp: mcp.resource("x://{a}")(lambda b: b), "subset"),
        (lambda mcp: mcp.resource("x://{a}{?b}")(lambda a, b: b), "default"),
        (lambda mcp: mcp.tool("t", output_schema={"type": "array"})(lambda: 1), "object's"),
    ],
)
def test_what_can_t_be_is_refused_with_what_to_do(make: Any, words: str) -> None:
    with pytest.raises((UnsupportedOption, RegistrationError), match=words):
        make(FastMCP("x"))


FOREIGN = """
import asyncio, json
from pathlib import Path
from fastmcp.exceptions import PromptError, ToolError
from fastmcp.prompts import Message, PromptResult, Prompt
from fastmcp.resources import FileResource, FunctionResource, ResourceContent, ResourceResult, TextResource
from fastmcp.server.middleware import AuthMiddleware, Middleware
from fastmcp.server.middleware.timing import TimingMiddleware
from fastmcp.tools import Tool, ToolResult, tool
from fastmcp.utilities.types import File, Image
from fastmcp import FastMCP as Theirs
from mcp_types import TextContent
from mcpace.fastmcp import FastMCP

mcp = FastMCP("x")

@mcp.tool
def whole() -> ToolResult:
    return ToolResult(content="said", structured_content={"a": 1}, meta={"m": 2})

@mcp.tool
def failed() -> ToolResult:
    return ToolResult(content=[TextContent(type="text", text="no")], is_error=True)

@mcp.tool
def media() -> list:
    return [Image(data=b"x", format="png"), File(data=b"y", format="csv"), "z"]

@mcp.tool
def raises() -> str:
    raise ToolError("for the model")

@tool(tags={"t"})
def marked() -> str:
    return "marked"
mcp.add_tool(marked)

@mcp.resource("data://x")
def result() -> ResourceResult:
    return ResourceResult([ResourceContent("one"), ResourceContent({"two": 2})], meta={"n": 3})

mcp.add_resource(TextResource(uri="text://x", text="text", name="t", tags={"t"}))

@mcp.prompt
def messages() -> list[Message]:
    return [Message("one"), Message("two", role="assistant")]

@mcp.prompt
def prompted() -> PromptResult:
    return PromptResult([Message("one")], description="d", meta={"n": 1})

class Own(Middleware):
    pass

refused = {}
for name, make in {
    "own": lambda: mcp.add_middleware(Own()),
    "auth": lambda: mcp.add_middleware(AuthMiddleware(auth=lambda c: True)),
    "timing": lambda: mcp.add_middleware(TimingMiddleware()),
    "constructor": lambda: FastMCP("y", middleware=[TimingMiddleware()]),
    "tool": lambda: mcp.add_tool(Tool.from_function(lambda: 1, name="t")),
    "prompt": lambda: mcp.add_prompt(Prompt.from_function(lambda: "1", name="t")),
    "resource": lambda: mcp.add_resource(FunctionResource.from_function(lambda: "1", "f://x", name="t")),
    "mount": lambda: mcp.mount(Theirs("z")),
}.items():
    try:
        make()
        refused[name] = "accepted"
    except ValueError as error:
        refused[name] = str(error)

async def main():
    from mcpace import Client
    told = {}
    async with Client(mcp) as client:
        for name in ("whole", "failed", "media", "raises", "marked"):
            told[name] = (await client.call_tool(name)).model_dump(mode="json", by_alias=True, exclude_none=True)
        for uri in ("data://x", "text://x"):
            told[uri] = (await client.read_resource(uri)).model_dump(mode="json", by_alias=True, exclude_none=True)
        for name in ("messages", "prompted"):
            told[name] = (await client.get_prompt(name)).model_dump(mode="json", by_alias=True, exclude_none=True)
        told["schemas"] = [tool.output_schema for tool in (await client.list_tools()).tools][:3]
    print(json.dumps({"told": told, "refused": refused}))
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def foreign() -> dict[str, Any]:
    done = subprocess.run(
        [str(interpreter(FASTMCP_4)), "-c", FOREIGN],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(ROOT) / "python")},
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_results_of_fastmcp_s_own_classes(foreign: dict[str, Any]) -> None:
    told = foreign["told"]
    whole = told["whole"]
    assert (whole["content"], whole["structuredContent"]) == ([{"type": "text", "text": "said"}], {"a": 1})
    assert whole["_meta"]["m"] == 2
    assert told["failed"]["isError"] is True
    assert [block["type"] for block in told["media"]["content"]] == ["image", "resource", "text"]
    assert told["raises"]["content"][0]["text"] == "for the model"
    assert told["marked"]["content"][0]["text"] == "marked"
    assert [one["text"] for one in told["data://x"]["contents"]] == ["one", '{"two":2}']
    assert told["data://x"]["_meta"]["n"] == 3
    assert told["text://x"]["contents"][0]["text"] == "text"
    assert [one["role"] for one in told["messages"]["messages"]] == ["user", "assistant"]
    assert (told["prompted"]["description"], told["prompted"]["_meta"]["n"]) == ("d", 1)
    assert told["schemas"] == [None, None, None]


def test_what_runs_in_fastmcp_s_own_context_is_refused(foreign: dict[str, Any]) -> None:
    refused = foreign["refused"]
    assert "accepted" not in refused.values(), refused
    assert "Import Middleware from mcpace.fastmcp" in refused["own"]
    assert "auth= checks" in refused["auth"]
    assert "@mcp.tool" in refused["tool"] and "@mcp.prompt" in refused["prompt"]
    assert "@mcp.resource" in refused["resource"]


def test_a_message_of_any_content() -> None:
    assert Message("text").role == "user"
    assert Message({"a": 1}).content == TextContent(text='{"a":1}')
    assert MiddlewareContext(message={}, method="ping").copy(method="x").method == "x"
