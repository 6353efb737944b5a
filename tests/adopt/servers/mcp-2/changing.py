"""Tools that come and go while the server runs."""

from mcp.server import MCPServer

mcp = MCPServer("Changing")


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
    mcp.remove_tool(name)
    return "shrunk"
