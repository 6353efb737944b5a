"""A tool's use of its context: progress, log, questions to the client, the server's own state."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel, Field


@dataclass
class State:
    greeting: str


@asynccontextmanager
async def lifespan(server: FastMCP) -> AsyncIterator[State]:
    yield State(greeting=f"hello from {server.name}")


mcp = FastMCP("Context", lifespan=lifespan)


class Preferences(BaseModel):
    check_alternative: bool = Field(description="Would you like to check another date?")
    alternative_date: str = Field(default="2026-12-26", description="Alternative date")


@mcp.tool()
async def long_task(task_name: str, ctx: Context, steps: int = 3) -> str:
    """Execute a task with progress updates."""
    await ctx.info(f"Starting: {task_name}")
    for i in range(steps):
        await ctx.report_progress(progress=(i + 1) / steps, total=1.0, message=f"Step {i + 1}/{steps}")
        await ctx.debug(f"Completed step {i + 1}")
    return f"Task '{task_name}' completed"


@mcp.tool()
async def book(day: str, ctx: Context) -> str:
    """Asks the user"""
    result = await ctx.elicit(message=f"No tables available for {day}.", schema=Preferences)
    if result.action == "accept":
        return f"accepted {result.data.check_alternative} {result.data.alternative_date}"
    return f"booking {result.action}"


@mcp.tool()
async def poem(topic: str, ctx: Context) -> str:
    """Asks the client's model"""
    result = await ctx.session.create_message(
        messages=[SamplingMessage(role="user", content=TextContent(type="text", text=f"Write about {topic}"))],
        max_tokens=100,
    )
    return result.content.text if result.content.type == "text" else str(result.content)


@mcp.tool()
async def roots(ctx: Context) -> list[str]:
    """Asks for the client's roots"""
    return [str(root.uri) for root in (await ctx.session.list_roots()).roots]


@mcp.tool()
async def state(ctx: Context) -> str:
    """The lifespan's value"""
    return ctx.request_context.lifespan_context.greeting


@mcp.tool()
def plain_state(ctx: Context) -> str:
    """As above, from a plain function"""
    return ctx.request_context.lifespan_context.greeting


@mcp.tool()
async def about(ctx: Context) -> dict[str, object]:
    """The context's facts about the request"""
    params = ctx.session.client_params
    return {
        "request": ctx.request_id,
        "client": params.clientInfo.name if params else None,
        "header": ctx.request_context.request.headers.get("x-example"),
        "server": ctx.fastmcp.name,
        "progress": bool(ctx.request_context.meta),
    }


@mcp.tool()
async def reads(ctx: Context) -> str:
    """Reads a resource of its own server"""
    return "".join(str(content.content) for content in await ctx.read_resource("note://one"))


@mcp.tool()
async def fails_after_log(ctx: Context) -> str:
    await ctx.warning("about to fail")
    raise RuntimeError("broken")


@mcp.resource("note://one")
def note() -> str:
    return "a note"


@mcp.resource("note://by/{name}")
async def note_by(name: str, ctx: Context) -> str:
    return f"{name} asked as {ctx.request_context.lifespan_context.greeting}"


@mcp.prompt()
async def ask(topic: str, ctx: Context) -> str:
    return f"{topic}: {ctx.request_context.lifespan_context.greeting}"
