"""Serves one tool over Streamable HTTP with sessions, by FastMCP."""

import os

from fastmcp import FastMCP

mcp = FastMCP("unifi")


@mcp.tool
async def list_sites() -> str:
    """Lists the sites."""
    return "default"


mcp.run("http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
