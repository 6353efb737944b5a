"""Updates five issues at once and gives up after a second, then lists the tools."""

import asyncio
import os
from datetime import timedelta

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client


async def update(session: ClientSession, number: int) -> None:
    try:
        await session.call_tool("update_issue", {"key": f"A-{number}"}, read_timeout_seconds=timedelta(seconds=1))
    except McpError as error:
        print(error)


async def main() -> None:
    async with streamablehttp_client(os.environ["MCP_URL"]) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        await session.list_tools()
        await asyncio.gather(*(update(session, number) for number in range(5)))
        await session.list_tools()
        await asyncio.sleep(1)


asyncio.run(main())
