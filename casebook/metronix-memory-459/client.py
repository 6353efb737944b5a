"""Searches five times, starts a synchronization, and searches on."""

import asyncio
import os

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main() -> None:
    async with streamablehttp_client(os.environ["MCP_URL"]) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        await session.list_tools()
        for number in range(25):
            if number == 5:
                await session.call_tool("source_sync", {})
            await session.call_tool("search", {"words": "cats"})
            await session.send_ping()
            await asyncio.sleep(0.1)


asyncio.run(main())
