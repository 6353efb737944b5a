"""The official Python SDK 1.x against a server; see ../README.md."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl


async def main(era: str, transport: str, target: list[str]) -> dict[str, Any]:
    assert era == "legacy", "the SDK 1.x knows no other"
    if transport == "http":
        async with streamable_http_client(target[0]) as (read, write, _session_id):
            return await converse(read, write)
    async with stdio_client(StdioServerParameters(command=target[0], args=target[1:])) as (read, write):
        return await converse(read, write)


async def converse(read: Any, write: Any) -> dict[str, Any]:
    progress: list[float] = []

    async def on_progress(value: float, total: float | None, message: str | None) -> None:
        progress.append(value)

    async with ClientSession(read, write) as session:
        welcome = await session.initialize()
        tools = await session.list_tools()
        echo = await session.call_tool("echo", {"text": "hello ✓"})
        await session.call_tool("test_tool_with_progress", {}, progress_callback=on_progress)
        resource = await session.read_resource(AnyUrl("test://static-text"))
        prompt = await session.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        return {
            "protocol": welcome.protocolVersion,
            "server": welcome.serverInfo.name,
            "tools": sorted(tool.name for tool in tools.tools),
            "echo": echo.content[0].text,
            "progress": progress,
            "resource": resource.contents[0].text,
            "prompt": prompt.messages[0].content.text,
            "missing": await fails(session),
        }


async def fails(session: ClientSession) -> bool:
    try:
        return (await session.call_tool("no_such_tool", {})).isError
    except McpError:
        return True


print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))))
