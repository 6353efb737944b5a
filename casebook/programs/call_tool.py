"""Calls a tool with the official Python SDK. Arguments: tool= arguments= calls= at_once= pings= sessions= pause="""

import asyncio
import contextlib
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

OPTIONS = {"tool": "", "arguments": "{}", "calls": "5", "at_once": "1", "pings": "0", "sessions": "1", "pause": "0"}
OPTIONS.update(argument.split("=", 1) for argument in sys.argv[1:])


def opened():
    if "MCP_URL" in os.environ:
        return streamablehttp_client(os.environ["MCP_URL"])
    command, *arguments = json.loads(os.environ["MCP_COMMAND"])
    return stdio_client(StdioServerParameters(command=command, args=arguments, env=dict(os.environ)))


async def use_session() -> None:
    calls, at_once, pings = (int(OPTIONS[name]) for name in ("calls", "at_once", "pings"))
    async with opened() as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        names = [tool.name for tool in (await session.list_tools()).tools]
        tool, arguments = OPTIONS["tool"] or names[0], json.loads(OPTIONS["arguments"])
        for first in range(0, calls, at_once):
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, calls - first)):
                    group.create_task(session.call_tool(tool, arguments))
                for _ in range(pings):
                    group.create_task(session.send_ping())
            await asyncio.sleep(float(OPTIONS["pause"]))


async def main() -> None:
    for _ in range(int(OPTIONS["sessions"])):
        with contextlib.suppress(asyncio.CancelledError):
            await use_session()


asyncio.run(main())
