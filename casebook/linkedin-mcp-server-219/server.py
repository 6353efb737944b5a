"""A server of FastMCP whose middleware admits one call at a time (`lock`), or without it (`no-lock`)."""

import asyncio
import os
import sys

from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware


class SequentialToolExecution(Middleware):
    def __init__(self) -> None:
        self.lock = asyncio.Lock()

    async def on_call_tool(self, context, call_next):
        async with self.lock:
            return await call_next(context)


mcp = FastMCP("profiles", middleware=[SequentialToolExecution()] if sys.argv[1] == "lock" else [])


@mcp.tool
async def get_profile() -> str:
    await asyncio.sleep(0.3)
    return "Ada"


mcp.run("http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
