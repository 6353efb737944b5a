"""Takes the turns of an agent: tools are listed for the model, then one is called."""

import asyncio
import os
import sys

from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset


async def main() -> None:
    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=os.environ["MCP_URL"]))
    tools = await toolset.get_tools()
    session = await toolset._mcp_session_manager.create_session()
    for city in ("Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"):
        if sys.argv[1] == "each-turn":
            tools = await toolset.get_tools()
        await session.call_tool(tools[0].name, {"city": city})
    await toolset.close()


asyncio.run(main())
