"""FastMCP's client against a server; see ../README.md."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp import MCPError


async def main(era: str, transport: str, target: list[str]) -> dict[str, Any]:
    way = StreamableHttpTransport(target[0]) if transport == "http" else StdioTransport(target[0], target[1:])
    progress: list[float] = []

    async def on_progress(value: float, total: float | None, message: str | None) -> None:
        progress.append(value)

    async with Client(way, mode="legacy" if era == "legacy" else "auto") as client:
        tools = await client.list_tools()
        echo = await client.call_tool("echo", {"text": "hello ✓"})
        await client.call_tool("test_tool_with_progress", {}, progress_handler=on_progress)
        resource = await client.read_resource("test://static-text")
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        return {
            "protocol": client.session.protocol_version,
            "server": client.server_info.name,
            "tools": sorted(tool.name for tool in tools),
            "echo": echo.content[0].text,
            "progress": progress,
            "resource": resource[0].text,
            "prompt": prompt.messages[0].content.text,
            "missing": await fails(client),
        }


async def fails(client: Client[Any]) -> bool:
    try:
        return (await client.call_tool("no_such_tool", {}, raise_on_error=False)).is_error
    except (ToolError, MCPError):
        return True


print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))))
