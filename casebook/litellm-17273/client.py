"""Calls a tool for six cities: by the gateway's client, or in one session."""

import asyncio
import os
import sys

from litellm.experimental_mcp_client.client import MCPClient
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import CallToolRequestParams

CITIES = ["Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"]


async def main() -> None:
    if sys.argv[1] == "client":
        for city in CITIES:
            client = MCPClient(server_url=os.environ["MCP_URL"], transport_type="http")
            await client.call_tool(CallToolRequestParams(name="forecast", arguments={"city": city}))
        return
    async with streamablehttp_client(os.environ["MCP_URL"]) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        for city in CITIES:
            await session.call_tool("forecast", {"city": city})


asyncio.run(main())
