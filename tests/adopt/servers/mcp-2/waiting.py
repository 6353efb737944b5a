"""A tool that waits until nobody wants its result."""

import asyncio

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

mcp = MCPServer("Waiting")
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
