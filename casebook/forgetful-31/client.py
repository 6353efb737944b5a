"""Calls a tool ten times with a token, with a ping before each call."""

import asyncio
import os

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main() -> None:
    headers = {"authorization": "Bearer secret"}
    async with (
        streamablehttp_client(os.environ["MCP_URL"], headers=headers) as streams,
        ClientSession(*streams[:2]) as session,
    ):
        await session.initialize()
        await session.list_tools()
        for number in range(10):
            await session.send_ping()
            await session.call_tool("recall", {"words": str(number)})


asyncio.run(main())
