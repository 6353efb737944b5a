"""Calls a tool six times: through get_tools(), or through load_mcp_tools() in one session."""

import asyncio
import os
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


async def call_six_times(tools) -> None:
    for city in ("Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"):
        await tools[0].ainvoke({"city": city})


async def main() -> None:
    client = MultiServerMCPClient({"weather": {"url": os.environ["MCP_URL"], "transport": "streamable_http"}})
    if sys.argv[1] == "get_tools":
        await call_six_times(await client.get_tools())
    else:
        async with client.session("weather") as session:
            await call_six_times(await load_mcp_tools(session))


asyncio.run(main())
