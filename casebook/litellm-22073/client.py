"""Calls a tool four times and asks for its progress."""

import asyncio
import os

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def note_progress(progress: float, total: float | None, message: str | None) -> None:
    print(progress, total, message)


async def main() -> None:
    async with streamablehttp_client(os.environ["MCP_URL"]) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        for _ in range(4):
            await session.call_tool("write_report", {}, progress_callback=note_progress)


asyncio.run(main())
