"""A tool that hides another one from its session."""

from fastmcp import Context, FastMCP

mcp = FastMCP("Visibility")


@mcp.tool
def echo(text: str) -> str:
    """Says the text again"""
    return text


@mcp.tool
async def hide(ctx: Context) -> str:
    await ctx.disable_components(names={"echo"})
    return "hidden"
