"""A server of one tool that takes a known time in a known layer: ``server.py KIND SECONDS PORT``."""

from __future__ import annotations

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

KIND, SECONDS, PORT = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
IN_TOOL = 0.0 if KIND in ("middleware", "http") else SECONDS
lock = asyncio.Lock()
pool = ThreadPoolExecutor(1)


def work_sync() -> str:
    time.sleep(IN_TOOL)
    return "done"


async def work_async() -> str:
    await asyncio.sleep(IN_TOOL)
    return "done"


async def work_blocking() -> str:
    time.sleep(IN_TOOL)
    return "done"


async def work_locked() -> str:
    async with lock:
        await asyncio.sleep(IN_TOOL)
    return "done"


async def work_pooled() -> str:
    return await asyncio.get_running_loop().run_in_executor(pool, work_sync)


WORK: dict[str, Any] = {
    "sync": work_sync,
    "blocking": work_blocking,
    "lock": work_locked,
    "pool": work_pooled,
    "mcpace": work_sync,
}
work = WORK.get(KIND, work_async)


class Delay:
    """ASGI middleware that delays the requests for ``/mcp``, or all."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (KIND == "http" or scope["path"] == "/mcp"):
            await asyncio.sleep(SECONDS)
        await self.app(scope, receive, send)


def main() -> None:
    if KIND == "mcpace":
        from mcpace import MCPServer

        ours = MCPServer("live")
        ours.tool(name="work", annotations={"readOnlyHint": True})(work)
        ours.run(transport="streamable-http", port=PORT)
        return
    if KIND == "fastmcp":
        from fastmcp import FastMCP

        other = FastMCP("live")
        other.tool(name="work", annotations={"readOnlyHint": True})(work)
        other.run(transport="http", port=PORT, show_banner=False)
        return
    import uvicorn
    from mcp.server.fastmcp import FastMCP as Official
    from mcp.types import ToolAnnotations

    server = Official("live", stateless_http=KIND == "stateless", port=PORT)
    server.tool(name="work", annotations=ToolAnnotations(readOnlyHint=True))(work)
    if KIND == "stdio":
        server.run()
        return
    app = server.streamable_http_app()
    uvicorn.run(Delay(app) if KIND in ("middleware", "http") else app, port=PORT, log_level="error")


main()
