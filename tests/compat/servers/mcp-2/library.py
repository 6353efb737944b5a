"""Prompts, completion, questions to the client and a lifespan."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from mcp.server.elicitation import AcceptedElicitation
from mcp.server.mcpserver import Context, Elicit, Image, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import AssistantMessage, Message, UserMessage
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

GENRES = ("poetry", "prose", "satire")


@asynccontextmanager
async def lifespan(server: MCPServer[dict[str, str]]) -> AsyncIterator[dict[str, str]]:
    yield {"greeting": "Welcome"}


mcp = MCPServer("library", version="2.1", instructions="Ask for a genre.", lifespan=lifespan)


class Loan(BaseModel):
    title: str = Field(description="Of the book")
    weeks: int = 2


def confirmed(title: str) -> Loan | Elicit[Loan]:
    return Loan(title=title) if title == "free" else Elicit(f"Lend {title}?", Loan)


@mcp.tool(title="Lend", annotations=ToolAnnotations(idempotent_hint=True))
async def lend(title: str, loan: Annotated[Loan, Resolve(confirmed)]) -> Loan:
    """Lends a book."""
    return loan


@mcp.tool()
async def reserve(title: str, ctx: Context[dict[str, str]]) -> str:
    """Reserves a book, after a question."""
    answer = await ctx.elicit(f"For how long is {title}?", Loan)
    if not isinstance(answer, AcceptedElicitation):
        return "not reserved"
    return f"{ctx.request_context.lifespan_context['greeting']}: {answer.data.title} for {answer.data.weeks} weeks"


@mcp.tool()
def cover(genre: str) -> list[TextContent | Image]:
    if genre == "text":
        raise ToolError("there is no such genre")
    return [TextContent(type="text", text=genre), Image(data=b"cover", format="png")]


@mcp.resource("library://{genre}/{number}", mime_type="text/plain")
def book(genre: str, number: int) -> str:
    """A book of a genre."""
    return f"{genre} {number}"


@mcp.prompt(title="Recommend")
def recommend(genre: str, language: str = "English") -> list[Message]:
    """Recommends a book."""
    return [UserMessage(f"A book of {genre} in {language}?"), AssistantMessage("One moment.")]


@mcp.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion | None:
    if isinstance(ref, PromptReference) and argument.name == "genre":
        return Completion(values=[genre for genre in GENRES if genre.startswith(argument.value)])
    if isinstance(ref, ResourceTemplateReference):
        return Completion(values=["1", "2"], total=2, has_more=False)
    return None
