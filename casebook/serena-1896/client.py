"""Calls a tool five times in one session. Meanwhile, begins other sessions."""

import asyncio
import os

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def use_session(calls: int) -> None:
    async with streamablehttp_client(os.environ["MCP_URL"]) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        for _ in range(calls):
            await session.call_tool("find_symbol", {"name": "visit"})


async def main() -> None:
    working = asyncio.create_task(use_session(5))
    for _ in range(4):
        await asyncio.sleep(0.5)
        await use_session(0)
    await working


asyncio.run(main())
