"""Runs an agent whose model is a script: it calls the tool for six cities, one after another."""

import asyncio
import os

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPServerStreamableHTTP
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

CITIES = ["Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Nice"]


def answer_next(messages, info) -> ModelResponse:
    turn = len(messages) // 2
    if turn < len(CITIES):
        return ModelResponse(parts=[ToolCallPart("forecast", {"city": CITIES[turn]})])
    return ModelResponse(parts=[TextPart("done")])


async def main() -> None:
    agent = Agent(FunctionModel(answer_next), toolsets=[MCPServerStreamableHTTP(os.environ["MCP_URL"])])
    async with agent:
        await agent.run("How is the weather?")


asyncio.run(main())
