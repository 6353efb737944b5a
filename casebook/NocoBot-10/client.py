"""Calls a tool six times: in a session for each call, or in one."""

import asyncio
import os
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

CITIES = ["Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"]


async def call_tool(cities: list[str]) -> None:
    async with streamablehttp_client(os.environ["MCP_URL"]) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        for city in cities:
            await session.call_tool("forecast", {"city": city})


async def main() -> None:
    for cities in [CITIES] if sys.argv[1] == "once" else [[city] for city in CITIES]:
        await call_tool(cities)


asyncio.run(main())
