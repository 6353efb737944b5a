"""Makes three slow calls, each in a session, with the read timeout of httpx (`default`) or of 300 seconds (`long`)."""

import asyncio
import os
import sys
from datetime import timedelta

import httpx
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamable_http_client


async def search(words: str) -> None:
    timeout = httpx.Timeout(30, read=300) if sys.argv[1] == "long" else httpx.Timeout(5)
    async with (
        httpx.AsyncClient(timeout=timeout) as http,
        streamable_http_client(os.environ["MCP_URL"], http_client=http) as streams,
        ClientSession(*streams[:2]) as session,
    ):
        await session.initialize()
        try:
            await session.call_tool("search_web", {"words": words}, read_timeout_seconds=timedelta(seconds=10))
        except McpError as error:
            print(error)


async def main() -> None:
    async with asyncio.TaskGroup() as group:
        for words in ("cats", "dogs", "owls"):
            group.create_task(search(words))
            await asyncio.sleep(0.7)


asyncio.run(main())
