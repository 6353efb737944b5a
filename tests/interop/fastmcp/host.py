"""A host: FastMCP's client of all servers of an mcp.json, which calls `echo` of each; see ../README.md.

Arguments: the file, then the names of the tools. Output: the text of each result, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from fastmcp import Client


async def main(file: str, tools: list[str]) -> list[str]:
    async with Client(json.loads(Path(file).read_text())) as client:
        await client.list_tools()
        return [(await client.call_tool(tool, {"text": f"to {tool}"})).content[0].text for tool in tools]


print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2:]))))
