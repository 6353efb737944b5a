"""A tool that says something which belongs to no request."""

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

mcp = MCPServer("Completing")


@mcp.tool()
async def confirm(payment: str, ctx: Context) -> str:
    """Says that the payment was made in the browser"""
    # These go to clients that listen for them, and to no other since 2026-07-28.
    await ctx.session.send_resource_updated(f"payment://{payment}")
    await ctx.session.send_tool_list_changed()
    await ctx.session.send_elicit_complete(payment)
    return "confirmed"
