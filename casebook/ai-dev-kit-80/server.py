"""Serves the tool `create_job`, which takes so many seconds."""

import asyncio
import os
import sys

from fastmcp import FastMCP

mcp = FastMCP("databricks")
SECONDS = float(sys.argv[1].removeprefix("seconds="))


@mcp.tool
async def create_job(name: str) -> str:
    """Creates a job."""
    await asyncio.sleep(SECONDS)
    return f"created {name}"


mcp.run("http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
