"""A server of the official Python SDK with one quick tool, over HTTP or stdio. Argument: stateless."""

import os
import sys

from mcp.server.fastmcp import FastMCP

OPTIONS = {"stateless_http": True} if "stateless" in sys.argv else {}
mcp = FastMCP("weather", host="127.0.0.1", port=int(os.environ.get("PORT", "0")), **OPTIONS)


@mcp.tool()
async def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return f"sunny in {city}"


mcp.run("streamable-http" if "PORT" in os.environ else "stdio")
