"""A server with a tool that works for seven seconds."""

import asyncio
import os

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("search", host="127.0.0.1", port=int(os.environ["PORT"]))


@mcp.tool()
async def search_web(words: str) -> str:
    """Searches the web."""
    await asyncio.sleep(7)
    return f"nothing on {words}"


mcp.run("streamable-http")
