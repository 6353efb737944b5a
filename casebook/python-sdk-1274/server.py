"""A server of FastMCP that accepts one token."""

import os

from fastmcp import FastMCP
from fastmcp.server.auth import StaticTokenVerifier

mcp = FastMCP("weather", auth=StaticTokenVerifier({"secret": {"client_id": "host", "scopes": []}}))


@mcp.tool
async def forecast(city: str) -> str:
    return f"sunny in {city}"


mcp.run("http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
