"""A server of FastMCP with its default path."""

import os

from fastmcp import FastMCP

mcp = FastMCP("weather")


@mcp.tool
async def forecast(city: str) -> str:
    return f"sunny in {city}"


mcp.run("http", host="127.0.0.1", port=int(os.environ["PORT"]))
