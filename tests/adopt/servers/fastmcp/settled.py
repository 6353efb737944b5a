"""A server with settings of its own, as FastMCP's variables or the program set them."""

import fastmcp
from fastmcp import FastMCP

fastmcp.settings.port = 0
fastmcp.settings.stateless_http = True
fastmcp.settings.json_response = True
fastmcp.settings.streamable_http_path = "/api"

mcp = FastMCP("Settled")


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b
