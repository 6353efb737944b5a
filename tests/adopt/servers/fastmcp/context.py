"""A tool's use of its context: progress, log, questions to the client, state, dependencies."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.dependencies import Depends
from fastmcp.server.dependencies import get_context, get_http_headers


@asynccontextmanager
async def lifespan(server: FastMCP) -> AsyncIterator[dict[str, str]]:
    yield {"greeting": f"hello from {server.name}"}


mcp = FastMCP("Context", lifespan=lifespan)


@dataclass
class Preferences:
    check_alternative: bool
    alternative_date: str = "2026-12-26"


def settings() -> dict[str, str]:
    return {"mode": "careful"}


@mcp.tool
async def long_task(task_name: str, ctx: Context, steps: int = 3) -> str:
    """Execute a task with progress updates."""
    await ctx.info(f"Starting: {task_name}")
    for i in range(steps):
        await ctx.report_progress(progress=(i + 1) / steps, total=1.0, message=f"Step {i + 1}/{steps}")
        await ctx.debug(f"Completed step {i + 1}")
    return f"Task '{task_name}' completed"


@mcp.tool
async def book(day: str, ctx: Context) -> str:
    """Asks the user"""
    result = await ctx.elicit(f"No tables available for {day}.", response_type=Preferences)
    if result.action == "accept":
        return f"accepted {result.data.check_alternative} {result.data.alternative_date}"
    return f"booking {result.action}"


@mcp.tool
async def poem(topic: str, ctx: Context) -> str:
    """Asks the client's model"""
    return str((await ctx.sample(f"Write about {topic}")).text)


@mcp.tool
async def roots(ctx: Context) -> list[str]:
    """Asks for the client's roots"""
    return [str(root.uri) for root in await ctx.list_roots()]


@mcp.tool
async def remember(value: str, ctx: Context) -> str:
    """Keeps something for the session"""
    before = await ctx.get_state("kept")
    await ctx.set_state("kept", value)
    return f"{before} → {value}"


@mcp.tool
async def depends(word: str, found: dict[str, str] = Depends(settings)) -> str:  # noqa: B008
    return f"{word} {found['mode']}"


@mcp.tool
def plain_headers() -> str:
    """Reads the request without a parameter"""
    return str(get_http_headers().get("x-example"))


@mcp.tool
def plain_context() -> str:
    """Finds the context by itself"""
    return get_context().fastmcp.name


@mcp.tool
async def about(ctx: Context) -> dict[str, object]:
    """The context's facts about the request"""
    return {"request": ctx.request_id, "server": ctx.fastmcp.name, "client": ctx.client_id}


@mcp.tool
async def state(ctx: Context) -> str:
    """The lifespan's value"""
    return ctx.lifespan_context["greeting"]


@mcp.tool
async def reads(ctx: Context) -> str:
    """Reads a resource of its own server"""
    return str((await ctx.read_resource("note://one")).contents[0].content)


@mcp.tool
async def fails_after_log(ctx: Context) -> str:
    await ctx.warning("about to fail")
    raise RuntimeError("broken")


@mcp.resource("note://one")
def note() -> str:
    return "a note"


@mcp.resource("note://by/{name}")
async def note_by(name: str, ctx: Context) -> str:
    return f"{name} asked as {ctx.lifespan_context['greeting']}"


@mcp.prompt
async def ask(topic: str, ctx: Context) -> str:
    return f"{topic}: {ctx.lifespan_context['greeting']}"
