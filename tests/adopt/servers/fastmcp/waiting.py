"""A tool that waits until nobody wants its result."""

import asyncio

from fastmcp import Context, FastMCP

mcp = FastMCP("Waiting")
ended: list[str] = []


@mcp.tool()
async def wait(ctx: Context) -> str:
    await ctx.report_progress(1)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        ended.append("cancelled")
        raise
    return "never"


@mcp.tool()
async def how() -> str:
    return ",".join(ended)
