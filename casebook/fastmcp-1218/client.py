"""Calls a tool six times with FastMCP's client: of two servers in a configuration, or of one server."""

import asyncio
import os
import sys

from fastmcp import Client

URL = os.environ["MCP_URL"]


async def main() -> None:
    two = {"mcpServers": {name: {"url": URL, "transport": "http"} for name in ("here", "there")}}
    async with Client(two if sys.argv[1] == "two" else URL) as client:
        for city in ("Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"):
            await client.call_tool("here_forecast" if sys.argv[1] == "two" else "forecast", {"city": city})


asyncio.run(main())
