"""Calls a tool for six cities: by the handler that pipecat registers (`client`), or in one session."""

import asyncio
import os
import sys

from mcp import ClientSession
from mcp.client.session_group import StreamableHttpParameters
from mcp.client.streamable_http import streamablehttp_client
from pipecat.services.llm_service import FunctionCallParams, LLMService
from pipecat.services.mcp_service import MCPClient

CITIES = ["Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"]


async def note_result(result: object, **_: object) -> None:
    print(result)


async def main() -> None:
    if sys.argv[1] == "client":
        client, llm = MCPClient(StreamableHttpParameters(url=os.environ["MCP_URL"])), LLMService()
        await client.register_tools(llm)
        handler = llm._functions["forecast"].handler
        for city in CITIES:
            await handler(FunctionCallParams("forecast", "1", {"city": city}, llm, None, note_result))
        return
    async with streamablehttp_client(os.environ["MCP_URL"]) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        for city in CITIES:
            await session.call_tool("forecast", {"city": city})


asyncio.run(main())
