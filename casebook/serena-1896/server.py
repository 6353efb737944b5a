"""A server whose tool walks a tree of symbols: `inline`, or in a `thread`."""

import ast
import os
import sys
import time
from pathlib import Path

import anyio.to_thread
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("serena", host="127.0.0.1", port=int(os.environ["PORT"]))
SOURCE = Path(ast.__file__).read_text(encoding="utf-8")


def find_symbol(name: str) -> int:
    found, end = 0, time.monotonic() + 0.5
    while time.monotonic() < end:
        found += sum(getattr(node, "name", "") == name for node in ast.walk(ast.parse(SOURCE)))
    return found


async def find_symbol_in_thread(name: str) -> int:
    return await anyio.to_thread.run_sync(find_symbol, name)


mcp.add_tool(find_symbol if sys.argv[1] == "inline" else find_symbol_in_thread, name="find_symbol")
mcp.run("streamable-http")
