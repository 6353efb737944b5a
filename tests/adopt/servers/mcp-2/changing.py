"""Tools that come and go while the server runs."""

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

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
async def announce(ctx: Context) -> str:
    await ctx.notify_resources_changed()
    await ctx.notify_resource_updated("note://one")
    return "announced"


@mcp.resource("note://one")
def note() -> str:
    return "a note"


@mcp.tool()
def shrink(name: str) -> str:
    mcp.remove_tool(name)
    return "shrunk"
