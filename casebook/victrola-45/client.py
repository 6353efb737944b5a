"""Calls a quick and a slow tool with a limit of two seconds. After a failure, connects and calls again (`retry`)."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

LIMIT_S = 2


class Connection:
    async def connect(self) -> None:
        self.stack = AsyncExitStack()
        streams = await self.stack.enter_async_context(streamablehttp_client(os.environ["MCP_URL"]))
        self.session = await self.stack.enter_async_context(ClientSession(*streams[:2]))
        await self.session.initialize()
        await self.session.list_tools()

    async def call_tool(self, name: str, arguments: dict) -> None:
        await asyncio.wait_for(self.session.call_tool(name, arguments), LIMIT_S)


async def main() -> None:
    connection = Connection()
    await connection.connect()
    for name, arguments in (("search", {"words": "cats"}), ("index", {"folder": "a"}), ("index", {"folder": "b"})):
        try:
            await connection.call_tool(name, arguments)
        except Exception:
            if sys.argv[1] == "no-retry":
                continue
            await connection.stack.aclose()
            await connection.connect()
            try:
                await connection.call_tool(name, arguments)
            except Exception as error:
                print(repr(error))
    await connection.stack.aclose()


asyncio.run(main())
