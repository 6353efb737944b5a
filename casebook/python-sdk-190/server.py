"""A low-level server over stdio with an async tool."""

import asyncio

from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

server = Server("index")


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    return [types.Tool(name="test", description="Waits.", inputSchema={"type": "object"})]


@server.call_tool()
async def call_tool(name: str, arguments: dict | None) -> list[types.TextContent]:
    await asyncio.sleep(0.3)
    return [types.TextContent(type="text", text="done")]


async def main() -> None:
    async with stdio_server() as streams:
        await server.run(*streams, server.create_initialization_options())


asyncio.run(main())
