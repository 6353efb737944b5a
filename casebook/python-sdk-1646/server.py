"""A tool of 300 ms: a function without async, or one that awaits."""

import asyncio
import os
import sys
import time

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("reports", host="127.0.0.1", port=int(os.environ["PORT"]))

if sys.argv[1] == "blocking":

    @mcp.tool()
    def report() -> str:
        time.sleep(0.3)
        return "done"

else:

    @mcp.tool()
    async def report() -> str:
        await asyncio.sleep(0.3)
        return "done"


mcp.run("streamable-http")
