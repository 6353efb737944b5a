"""Prompts, completion, questions to the client and a lifespan, with the names of mcp 1.x."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import mcp.types as types
from mcp.server.elicitation import AcceptedElicitation
from mcp.server.fastmcp import Context, FastMCP, Image
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.fastmcp.prompts import base
from mcp.server.session import ServerSession
from pydantic import BaseModel, Field

GENRES = ("poetry", "prose", "satire")


@asynccontextmanager
async def lifespan(server: FastMCP) -> AsyncIterator[dict[str, str]]:
    yield {"greeting": "Welcome"}


mcp = FastMCP("library", instructions="Ask for a genre.", lifespan=lifespan)


class Loan(BaseModel):
    title: str = Field(description="Of the book")
    weeks: int = 2


@mcp.tool(title="Lend", annotations=types.ToolAnnotations(idempotentHint=True))
async def lend(title: str, weeks: int = 2) -> Loan:
    """Lends a book."""
    return Loan(title=title, weeks=weeks)


@mcp.tool()
async def reserve(title: str, ctx: Context[ServerSession, dict[str, str]]) -> str:
    """Reserves a book, after a question."""
    answer = await ctx.elicit(f"For how long is {title}?", Loan)
    if not isinstance(answer, AcceptedElicitation):
        return "not reserved"
    return f"{ctx.request_context.lifespan_context['greeting']}: {answer.data.title} for {answer.data.weeks} weeks"


@mcp.tool()
def cover(genre: str) -> list[types.TextContent | Image]:
    if genre == "text":
        raise ToolError("there is no such genre")
    return [types.TextContent(type="text", text=genre), Image(data=b"cover", format="png")]


@mcp.resource("library://{genre}/{number}", mime_type="text/plain")
def book(genre: str, number: int) -> str:
    """A book of a genre."""
    return f"{genre} {number}"


@mcp.prompt(title="Recommend")
def recommend(genre: str, language: str = "English") -> list[base.Message]:
    """Recommends a book."""
    return [base.UserMessage(f"A book of {genre} in {language}?"), base.AssistantMessage("One moment.")]


@mcp.completion()
async def complete(
    ref: types.PromptReference | types.ResourceTemplateReference,
    argument: types.CompletionArgument,
    context: types.CompletionContext | None,
) -> types.Completion | None:
    if isinstance(ref, types.PromptReference) and argument.name == "genre":
        return types.Completion(values=[genre for genre in GENRES if genre.startswith(argument.value)])
    return None
