"""Middleware that sees and changes calls."""

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import Middleware


class Changes(Middleware):
    async def on_call_tool(self, context, call_next):
        if context.message.name == "forbidden":
            raise ToolError("not for you")
        if context.message.name == "echo":
            context.message.arguments["text"] = context.message.arguments.get("text", "") + "!"
        return await call_next(context)

    async def on_list_tools(self, context, call_next):
        return [tool for tool in await call_next(context) if tool.name != "unlisted"]


mcp = FastMCP("Middleware")
mcp.add_middleware(Changes())


@mcp.tool
def echo(text: str) -> str:
    """Says the text again"""
    return text


@mcp.tool
def forbidden() -> str:
    return "never seen"


@mcp.tool
def unlisted() -> str:
    return "there all the same"
