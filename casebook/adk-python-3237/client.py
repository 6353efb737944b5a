"""Runs an agent whose model is a script: with the server's toolset, or with a list of its tools."""

import asyncio
import os
import sys

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from google.genai import types

CITIES = ["Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"]


class Script(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        done = sum(bool(part.function_response) for content in llm_request.contents for part in content.parts)
        if done < len(CITIES):
            part = types.Part.from_function_call(name="forecast", args={"city": CITIES[done]})
        else:
            part = types.Part.from_text(text="sunny everywhere")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def main() -> None:
    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=os.environ["MCP_URL"]))
    tools = [toolset] if sys.argv[1] == "toolset" else await toolset.get_tools()
    runner = InMemoryRunner(LlmAgent(name="weather", model=Script(model="script"), tools=tools))
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="user")
    question = types.Content(role="user", parts=[types.Part.from_text(text="How is the weather?")])
    async for event in runner.run_async(user_id="user", session_id=session.id, new_message=question):
        print(event.content)
    await toolset.close()


asyncio.run(main())
