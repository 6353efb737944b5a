"""A server of the official SDK, version 1 or 2, with a tool without async."""

import os
import time

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server

mcp = Server("work")


@mcp.tool()
def work() -> str:
    """Works for 300 ms."""
    time.sleep(0.3)
    return "done"


if hasattr(mcp.settings, "port"):
    mcp.settings.port = int(os.environ["PORT"])
    mcp.run("streamable-http")
else:
    mcp.run("streamable-http", host="127.0.0.1", port=int(os.environ["PORT"]))
