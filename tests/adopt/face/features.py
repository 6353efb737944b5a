# ruff: noqa: B008
"""A server of FastMCP's features, with FastMCP's own imports or with those of mcpace.fastmcp (``FACE=mcpace``)."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

if os.environ.get("FACE") == "mcpace":
    from mcpace.fastmcp import (
        CallArgument,
        Context,
        CurrentContext,
        CurrentHeaders,
        Depends,
        FastMCP,
        File,
        FileResource,
        Image,
        Message,
        Middleware,
        PromptResult,
        ResourceContent,
        ResourceResult,
        TextResource,
        ToolError,
        ToolResult,
        get_server,
        prompt,
        tool,
    )
    from mcpace.types import Completion, PromptReference, TextContent
else:
    from fastmcp import Context, FastMCP
    from fastmcp.dependencies import CallArgument, CurrentContext, CurrentHeaders, Depends
    from fastmcp.exceptions import ToolError
    from fastmcp.prompts import Message, PromptResult, prompt
    from fastmcp.resources import FileResource, ResourceContent, ResourceResult, TextResource
    from fastmcp.server.dependencies import get_server
    from fastmcp.server.middleware import Middleware
    from fastmcp.tools import ToolResult, tool
    from fastmcp.utilities.types import File, Image
    from mcp_types import Completion, PromptReference, TextContent

mcp = FastMCP("features", version="1.0")


class Item(BaseModel):
    name: str
    price: float = Field(default=1.5, title="What it costs", gt=0)


@dataclass
class Point:
    x: int
    y: int


class Node(BaseModel):
    value: int
    children: "list[Node]" = []


class Notes(Middleware):
    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        if context.fastmcp_context is not None:
            await context.fastmcp_context.set_state("middleware", context.message.name)
        return await call_next(context)


mcp.add_middleware(Notes())


@mcp.tool
def add(a: int, b: Annotated[int, "the other"] = 2) -> int:
    """Add numbers.

    Args:
        a: the one
            of them
        b: not read, since it has a description

    Returns:
        The sum.
    """
    return a + b


@mcp.tool(tags={"shop"}, meta={"team": "x"}, annotations={"title": "The order", "readOnlyHint": True})
def order(item: Item, count: Annotated[int, Field(ge=1)] = 1, kind: Literal["a", "b"] = "a") -> Item:
    return Item(name=item.name, price=item.price * count)


@mcp.tool
def undocumented(items: list[Item], when: str | None = None) -> list[Item]:
    return items


@mcp.tool
def sphinx(path: str) -> dict:
    """Read it.

    :param path: where it is
    :returns: what it has
    """
    return {"path": path}


@mcp.tool
def anything(value: Any):
    return value


@mcp.tool
def many() -> list:
    return [1, "two", {"three": 3}]


@mcp.tool
def numbers() -> list[int]:
    return [1, 2]


@mcp.tool
def point() -> Point:
    return Point(1, 2)


@mcp.tool
def tree() -> Node:
    return Node(value=1, children=[Node(value=2)])


@mcp.tool
def nothing() -> None:
    return None


@mcp.tool
def maybe(value: int = 0) -> str | None:
    return str(value) if value else None


@mcp.tool
def raw() -> bytes:
    return b"bytes"


@mcp.tool
def picture() -> Image:
    return Image(data=b"png", format="png")


@mcp.tool
def mixed() -> list:
    return ["text", Image(data=b"png", format="png"), File(data=b"a,b", format="csv", name="table"), {"k": 1}]


@mcp.tool
def whole() -> ToolResult:
    return ToolResult(content="said", structured_content={"a": 1}, meta={"m": 2})


@mcp.tool
def failed() -> ToolResult:
    return ToolResult(content=[TextContent(type="text", text="no")], is_error=True)


@mcp.tool
def generated(count: int) -> list[int]:
    yield from range(count)


@mcp.tool(output_schema={"type": "object", "properties": {"x": {"type": "integer"}}})
def declared() -> dict[str, int]:
    return {"x": 1}


@mcp.tool
def crashes() -> str:
    raise KeyError("details")


@mcp.tool
def foreseen() -> str:
    raise ToolError("for the model")


def account(user: str) -> dict[str, str]:
    return {"user": user}


def owner(name: str = CallArgument("owner")) -> str:
    return name.upper()


@mcp.tool
async def depends(
    owner: str,
    given: dict[str, str] = Depends(account, user=CallArgument("owner")),
    upper: str = Depends(owner),
    bound: dict[str, str] = Depends(account, user="fixed"),
    marked: Annotated[dict[str, str] | None, Depends(account, user="annotated")] = None,
    headers: dict[str, str] = CurrentHeaders(),
    ctx: Context = CurrentContext(),
) -> list[Any]:
    return [owner, given, upper, bound, marked, headers, ctx.fastmcp.name, get_server().name]


def broken() -> str:
    raise ValueError("no such thing")


@mcp.tool
def unresolved(value: str = Depends(broken)) -> str:
    return value


@mcp.tool
async def remembers(value: str, ctx: Context) -> str:
    before = await ctx.get_state("kept")
    await ctx.set_state("kept", value)
    same = ctx.session_id == await ctx.get_state("session") or before is None
    await ctx.set_state("session", ctx.session_id)
    return f"{before} {same} {ctx.transport} {await ctx.get_state('middleware')}"


@mcp.tool
async def logs(ctx: Context) -> str:
    await ctx.info("hello", extra={"k": 1})
    await ctx.warning("careful", logger_name="mine")
    return "logged"


@mcp.tool
async def reads(uri: str, ctx: Context) -> str:
    result = await ctx.read_resource(uri)
    return f"{result.contents[0].content!r} {result.contents[0].mime_type}"


@tool(name="apart", tags={"z"})
def standalone(word: str) -> str:
    """Registered later."""
    return word


mcp.add_tool(standalone)


@mcp.resource("data://plain", tags={"t"}, meta={"m": 1})
def plain() -> str:
    """A text.

    A text of two lines.
    """
    return "text"


@mcp.resource("data://json", mime_type="application/json")
def structured() -> dict[str, Any]:
    return {"a": [1, 2]}


@mcp.resource("data://result")
def result() -> ResourceResult:
    return ResourceResult(
        contents=[ResourceContent("one"), ResourceContent({"two": 2}), ResourceContent(b"three")], meta={"n": 3}
    )


@mcp.resource("data://contents")
def contents() -> list[ResourceContent]:
    return [ResourceContent("one", mime_type="text/markdown", meta={"c": 1}), ResourceContent(b"two")]


@mcp.resource("data://fails")
def fails() -> str:
    raise ValueError("unreadable")


@mcp.resource("items://{name}")
def item(name: str, count: int = 2) -> str:
    """
    An item.
    """
    return f"{name} {count}"


@mcp.resource("squares://{number}")
def square(number: int) -> str:
    return str(number * number)


@mcp.resource("search://{term}{?limit}")
def search(term: str, limit: int = 10) -> str:
    return f"{term} {limit}"


mcp.add_resource(TextResource(uri="text://fixed", text="fixed", name="Fixed", tags={"t"}))
mcp.add_resource(FileResource(uri="file:///this", path=Path(__file__).resolve().parent / "note.txt", name="note"))


@mcp.prompt
def bare(topic: str) -> str:
    """Explain it.

    Args:
        topic: what to explain
    """
    return f"Explain {topic}"


@mcp.prompt(tags={"t"}, meta={"m": 1})
def conversation(count: int, flag: bool = False) -> list[Message]:
    return [Message(f"{count + 1} {flag}"), Message("Fine.", role="assistant"), Message({"json": [count]})]


@mcp.prompt
def results() -> PromptResult:
    return PromptResult([Message("one")], description="Of its own", meta={"n": 1})


@mcp.prompt
def breaks() -> str:
    raise ValueError("unwritable")


@prompt(title="Apart")
def later() -> str:
    return "later"


mcp.add_prompt(later)


@mcp.completion
def complete(ref: Any, argument: Any, context: Any) -> Any:
    if isinstance(ref, PromptReference):
        return ["one", "two"] if argument.name == "topic" else None
    return Completion(values=["x"], total=5, has_more=True)


@mcp.tool(tags={"hidden"})
def hidden() -> str:
    return "never"


@mcp.tool(name="again", tags={"hidden"})
def shown_again() -> str:
    return "again"


mcp.disable(tags={"hidden"})
mcp.enable(names={"again"})

if __name__ == "__main__":
    mcp.run()
