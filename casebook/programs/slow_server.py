"""A server of the official Python SDK with a tool that waits for 300 ms, over HTTP or stdio."""

import asyncio
import os

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("slow", host="127.0.0.1", port=int(os.environ.get("PORT", "8000")))


@mcp.tool()
async def wait() -> str:
    """Waits."""
    await asyncio.sleep(0.3)
    return "done"


mcp.run("streamable-http" if "PORT" in os.environ else "stdio")
