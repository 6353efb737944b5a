"""`agent.py URL cached|uncached RUNS`: an agent of the OpenAI Agents SDK with one MCP server and a scripted model.

Everything but the model is the SDK's: what it asks the server, and when. The script has each run call the tool `greet`
twice, a turn each, and then say something.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agents import Agent, Runner, set_tracing_disabled
from agents.items import ModelResponse
from agents.mcp import MCPServerStreamableHttp
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

CALLS = 2


class ScriptedModel(Model):
    """Asks nobody: its answers are written here."""

    def __init__(self) -> None:
        self.turn = 0

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        self.turn += 1
        last = self.turn % (CALLS + 1) == 0
        return ModelResponse(output=[said() if last else self.call()], usage=Usage(), response_id=None)

    def call(self) -> ResponseFunctionToolCall:
        arguments = f'{{"name": "turn {self.turn}"}}'
        return ResponseFunctionToolCall(
            type="function_call", call_id=f"call-{self.turn}", name="greet", arguments=arguments
        )

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("no run of this program asks for a stream")


def said() -> ResponseOutputMessage:
    text = ResponseOutputText(type="output_text", text="Done.", annotations=[])
    return ResponseOutputMessage(id="said", type="message", role="assistant", status="completed", content=[text])


async def main(url: str, cached: bool, runs: int) -> None:
    set_tracing_disabled(True)
    async with MCPServerStreamableHttp({"url": url}, cache_tools_list=cached) as server:
        agent = Agent(name="greeter", model=ScriptedModel(), mcp_servers=[server])
        for _ in range(runs):
            done = await Runner.run(agent, "Greet somebody.")
            assert done.final_output == "Done.", done.final_output


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2] == "cached", int(sys.argv[3])))
