"""Takes the turns of an agent: its tools are collected for the model, then one is called."""

import asyncio
import os
import sys

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStreamableHttp


async def main() -> None:
    params = {"url": os.environ["MCP_URL"]}
    async with MCPServerStreamableHttp(params, cache_tools_list=sys.argv[1] == "cached") as server:
        agent, context = Agent(name="weather", mcp_servers=[server]), RunContextWrapper(None)
        for city in ("Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"):
            tools = await agent.get_all_tools(context)
            await tools[0].on_invoke_tool(context, f'{{"city": "{city}"}}')


asyncio.run(main())
