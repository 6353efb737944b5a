"""Answers six messages of a chat. For `each-message`, a client connects and lists the tools; or it does `once`."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

CITIES = ["Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"]


class MCPClient:
    async def connect(self, url: str) -> None:
        self.stack = AsyncExitStack()
        streams = await self.stack.enter_async_context(streamablehttp_client(url))
        self.session = await self.stack.enter_async_context(ClientSession(*streams[:2]))
        await self.session.initialize()

    async def list_tool_specs(self) -> list[str]:
        return [tool.name for tool in (await self.session.list_tools()).tools]


async def answer(client: MCPClient, tools: list[str], city: str) -> None:
    await client.session.call_tool(tools[0], {"city": city})


async def main() -> None:
    client = MCPClient()
    if sys.argv[1] == "once":
        await client.connect(os.environ["MCP_URL"])
        tools = await client.list_tool_specs()
    for city in CITIES:
        if sys.argv[1] == "each-message":
            await client.connect(os.environ["MCP_URL"])
            tools = await client.list_tool_specs()
        await answer(client, tools, city)
        if sys.argv[1] == "each-message":
            await client.stack.aclose()
    if sys.argv[1] == "once":
        await client.stack.aclose()


asyncio.run(main())
