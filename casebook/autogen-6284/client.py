"""Runs an MCP tool of AutoGen six times: without a session, or with one that the tools share."""

import asyncio
import os
import sys

from autogen_core import CancellationToken
from autogen_ext.tools.mcp import StreamableHttpServerParams, create_mcp_server_session, mcp_server_tools

SERVER = StreamableHttpServerParams(url=os.environ["MCP_URL"])


async def run_six_times(tools) -> None:
    for city in ("Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"):
        await tools[0].run_json({"city": city}, CancellationToken())


async def main() -> None:
    if sys.argv[1] == "no-session":
        await run_six_times(await mcp_server_tools(SERVER))
    else:
        async with create_mcp_server_session(SERVER) as session:
            await session.initialize()
            await run_six_times(await mcp_server_tools(SERVER, session=session))


asyncio.run(main())
