"""A server with a quick tool and one that works for three seconds."""

import asyncio
import os

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("station", host="127.0.0.1", port=int(os.environ["PORT"]))


@mcp.tool()
async def search(words: str) -> str:
    """Searches."""
    return f"nothing on {words}"


@mcp.tool()
async def index(folder: str) -> str:
    """Indexes a folder."""
    await asyncio.sleep(3)
    return f"indexed {folder}"


mcp.run("streamable-http")
