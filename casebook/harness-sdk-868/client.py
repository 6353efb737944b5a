"""Answers six prompts with Strands' client: made for `each-prompt`, or `once`."""

import os
import sys
from contextlib import nullcontext

from mcp.client.streamable_http import streamablehttp_client
from strands.tools.mcp import MCPClient

CITIES = ["Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"]


def new_client() -> MCPClient:
    return MCPClient(lambda: streamablehttp_client(os.environ["MCP_URL"]))


def answer(client: MCPClient, tool: str, city: str) -> None:
    client.call_tool_sync("1", tool, {"city": city})


each = sys.argv[1] == "each-prompt"
with nullcontext() if each else new_client() as shared:
    tools = shared.list_tools_sync() if shared else []
    for city in CITIES:
        if each:
            with new_client() as client:
                answer(client, client.list_tools_sync()[0].tool_name, city)
        else:
            answer(shared, tools[0].tool_name, city)
