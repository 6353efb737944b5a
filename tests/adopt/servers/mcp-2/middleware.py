"""Middleware that sees and changes messages."""

from dataclasses import replace

from mcp.server import MCPServer
from mcp.shared.exceptions import MCPError


async def changes(ctx, call_next):
    if ctx.method == "tools/call":
        params = dict(ctx.params)
        if params["name"] == "forbidden":
            raise MCPError(code=-32050, message="not for you")
        if params["name"] == "echo":
            params["arguments"] = {"text": params["arguments"].get("text", "") + "!"}
        return await call_next(replace(ctx, params=params))
    return await call_next(ctx)


mcp = MCPServer("Middleware", middleware=[changes])


@mcp.tool()
def echo(text: str) -> str:
    """Says the text again"""
    return text


@mcp.tool()
def forbidden() -> str:
    return "never seen"
