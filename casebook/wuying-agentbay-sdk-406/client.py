"""Calls a tool for six cities: by LlamaIndex's client, or in one session."""

import asyncio
import os
import sys

from llama_index.tools.mcp import BasicMCPClient

CITIES = ["Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"]


async def main() -> None:
    client = BasicMCPClient(os.environ["MCP_URL"])
    if sys.argv[1] == "client":
        for city in CITIES:
            await client.call_tool("forecast", {"city": city})
        return
    async with client._run_session() as session:
        for city in CITIES:
            await session.call_tool("forecast", {"city": city})


asyncio.run(main())
