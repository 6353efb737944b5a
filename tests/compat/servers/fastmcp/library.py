"""Prompts, dependencies, state, questions to the client and middleware in FastMCP's style."""

from typing import Any

from fastmcp import Context, FastMCP
from fastmcp.dependencies import CurrentContext, Depends
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Message
from fastmcp.server.middleware import Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from fastmcp.utilities.types import Image
from pydantic import BaseModel

mcp = FastMCP("library", version="2.1", instructions="Ask for a genre.")


class Loan(BaseModel):
    title: str
    weeks: int = 2


class Counting(Middleware):
    """Marks every call of a tool."""

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: Any) -> Any:
        return await call_next(context)


mcp.add_middleware(Counting())


def desk() -> str:
    return "desk 1"


@mcp.tool(tags={"loans"}, annotations={"idempotentHint": True})
def lend(title: str, weeks: int = 2, place: str = Depends(desk)) -> Loan:
    """Lends a book."""
    return Loan(title=f"{title} at {place}", weeks=weeks)


@mcp.tool
async def remember(title: str, ctx: Context = CurrentContext()) -> str:  # noqa: B008
    """Remembers a book."""
    before = await ctx.get_state("title")
    await ctx.set_state("title", title)
    await ctx.info("remembered")
    return f"{before}, then {title}"


@mcp.tool
def cover(genre: str) -> list[Any]:
    if genre == "text":
        raise ToolError("there is no such genre")
    return [genre, Image(data=b"cover", format="png")]


@mcp.tool
def by_hand(value: int) -> ToolResult:
    return ToolResult(content="by hand", structured_content={"value": value})


@mcp.resource("library://{genre}/{number}", mime_type="text/plain")
def book(genre: str, number: int) -> str:
    """A book of a genre."""
    return f"{genre} {number}"


@mcp.prompt
def recommend(genre: str, language: str = "English") -> list[Message]:
    """Recommends a book."""
    return [Message(f"A book of {genre} in {language}?"), Message("One moment.", role="assistant")]
