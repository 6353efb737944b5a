"""A tool that says something which belongs to no request."""

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

mcp = MCPServer("Completing")


@mcp.tool()
async def confirm(payment: str, ctx: Context) -> str:
    """Says that the payment was made in the browser"""
    await ctx.session.send_elicit_complete(payment)
    return "confirmed"
