"""A server with settings of its own, as authors give them to the constructor."""

from mcp.server.fastmcp import FastMCP

mcp = FastMCP(
    "Settled", port=0, stateless_http=True, json_response=True, streamable_http_path="/api", sse_path="/events"
)


@mcp.tool()
def add(a: int, b: int) -> int:
    return a + b
