"""Tools that come and go while the server runs."""

from fastmcp import FastMCP

mcp = FastMCP("Changing")


def extra(word: str) -> str:
    """Not there from the start"""
    return f"extra {word}"


@mcp.tool()
def first(word: str) -> str:
    return word


@mcp.tool()
async def grow() -> str:
    mcp.add_tool(extra)
    return "grown"


@mcp.tool()
def shrink(name: str) -> str:
    mcp.local_provider.remove_tool(name)
    return "shrunk"
