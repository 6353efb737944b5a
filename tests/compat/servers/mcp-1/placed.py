"""A server object with settings of its own transport."""

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("placed", stateless_http=True, json_response=True, streamable_http_path="/api")


@mcp.tool()
def where() -> str:
    """Says where."""
    return "here"
