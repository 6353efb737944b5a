"""Connects four times and calls a tool: asks for Streamable HTTP first (`probe`), or opens the event stream (`sse`)."""

import asyncio
import os
import sys

from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamablehttp_client

URL = os.environ["MCP_URL"]


async def probe() -> bool:
    try:
        async with streamablehttp_client(URL) as streams, ClientSession(*streams[:2]) as session:
            await asyncio.wait_for(session.initialize(), 2)
    except BaseException as error:
        print(repr(error))
        return False
    return True


async def main() -> None:
    for city in ("Oslo", "Rome", "Bonn", "Lima"):
        if sys.argv[1] == "probe":
            assert not await probe()
        async with sse_client(URL) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await session.call_tool("forecast", {"city": city})


asyncio.run(main())
