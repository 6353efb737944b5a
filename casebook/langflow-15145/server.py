"""A server of the transport of 2024-11-05."""

import os

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("weather", host="127.0.0.1", port=int(os.environ["PORT"]))


@mcp.tool()
async def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return f"sunny in {city}"


mcp.run("sse")
