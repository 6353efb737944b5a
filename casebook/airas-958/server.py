"""A server that imports litellm at the start (`eager`) or at the first call (`lazy`)."""

import sys

from mcp.server.fastmcp import FastMCP

if sys.argv[1] == "eager":
    import litellm  # noqa: F401

mcp = FastMCP("airas")


@mcp.tool()
async def count_tokens(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())


mcp.run()
