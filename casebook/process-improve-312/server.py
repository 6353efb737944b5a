"""A server whose tool works in a process pool, and waits for it with `result` or `await`."""

import asyncio
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("statistics", host="127.0.0.1", port=int(os.environ["PORT"]))
pool = ProcessPoolExecutor(2)


def fit_model() -> str:
    time.sleep(0.3)
    return "fitted"


@mcp.tool()
async def fit() -> str:
    """Fits a model."""
    if sys.argv[1] == "await":
        return await asyncio.wrap_future(pool.submit(fit_model))
    return pool.submit(fit_model).result(timeout=20)


if __name__ == "__main__":
    mcp.run("streamable-http")
