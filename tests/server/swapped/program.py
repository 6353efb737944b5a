"""A server whose class alone is mcpace's: every other import is the official SDK's, of 1.x or 2.x.

Prints what its clients get, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from typing import Any

import mcp.types as types
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.elicitation import AcceptedElicitation
from pydantic import BaseModel

import mcpace
from mcpace import MCPServer
from mcpace.testing import connect

if sys.argv[1] == "1":
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp.prompts import Prompt
    from mcp.server.fastmcp.resources import TextResource
    from mcp.server.fastmcp.tools import Tool
    from mcp.shared.memory import create_connected_server_and_client_session
else:
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.prompts import Prompt
    from mcp.server.mcpserver.resources import TextResource
    from mcp.server.mcpserver.tools import Tool

warnings.simplefilter("ignore")
server = MCPServer("swapped")


class Answer(BaseModel):
    sure: bool


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> types.Completion | None:
    if isinstance(ref, types.PromptReference) and isinstance(argument, types.CompletionArgument):
        return types.Completion(values=[f"prompt {ref.name}"])
    if isinstance(ref, types.ResourceTemplateReference):
        return types.Completion(values=[f"template {ref.uri}"])
    return None


@server.tool()
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Sure?", Answer)
    return "yes" if isinstance(answer, AcceptedElicitation) and answer.data.sure else "no"


@server.tool()
async def sample(ctx: Context) -> str:
    content = types.TextContent(type="text", text="hi")
    result = await ctx.session.create_message([types.SamplingMessage(role="user", content=content)], max_tokens=9)
    assert isinstance(result, types.CreateMessageResult), type(result)
    assert isinstance(result.content, types.TextContent), type(result.content)
    return result.content.text


@server.tool()
async def picture(ctx: Context) -> list[types.ImageContent]:
    content = types.TextContent(type="text", text="draw")
    result = await ctx.session.create_message([types.SamplingMessage(role="user", content=content)], max_tokens=9)
    assert isinstance(result.content, types.ImageContent), type(result.content)
    return [result.content]


@server.tool()
async def notify(ctx: Context) -> str:
    params = types.LoggingMessageNotificationParams(level="info", logger="l", data="sent")
    notification: Any = types.LoggingMessageNotification(method="notifications/message", params=params)
    if sys.argv[1] == "1":
        notification = types.ServerNotification(notification)
    await ctx.session.send_notification(notification)
    return "notified"


@server.tool()
def around(name: str) -> str:
    context = server.get_context()
    return f"{name} {context.request_id is not None} {context.fastmcp is server}"


def code(language: str) -> str:
    """Reviews code."""
    return f"Review {language}"


def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


server.add_prompt(Prompt.from_function(code, name="review", title="Review"))
server.add_tool(Tool.from_function(add, title="Add"))
server.add_resource(TextResource(uri="note://one", name="one", text="first"))


def refused(register: Any) -> str:
    try:
        register()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "taken"


async def main() -> dict[str, Any]:
    told: dict[str, Any] = {}
    logged: list[Any] = []

    async def elicited(*_: Any) -> Any:
        return mcpace.types.ElicitResult(action="accept", content={"sure": True})

    async def sampled(*given: Any) -> Any:
        content: Any = mcpace.types.TextContent(text="sampled")
        if "draw" in str([vars(one) for one in given if hasattr(one, "messages")]):
            content = mcpace.types.ImageContent(data="aGk=", mime_type="image/png")
        return mcpace.types.CreateMessageResult(role="assistant", content=content, model="m")

    async def heard(message: Any) -> None:
        logged.append(message.data)

    async with connect(
        server, elicitation_callback=elicited, sampling_callback=sampled, logging_callback=heard, log_level="info"
    ) as client:
        for name in ("ask", "sample", "notify"):
            told[name] = (await client.call_tool(name, {})).content[0].text
        [block] = (await client.call_tool("picture", {})).content
        told["picture"] = [block.type, getattr(block, "mime_type", str(block))]
        told["around"] = (await client.call_tool("around", {"name": "n"})).content[0].text
        told["add"] = (await client.call_tool("add", {"a": 2})).structured_content
        prompt = await client.get_prompt("review", {"language": "rust"})
        told["prompt"] = [prompt.messages[0].content.text, (await client.list_prompts()).prompts[0].title]
        told["resource"] = (await client.read_resource("note://one")).contents[0].text
        references = (types.PromptReference(type="ref/prompt", name="review"),)
        for reference in (*references, types.ResourceTemplateReference(type="ref/resource", uri="note://{x}")):
            completed = await client.complete(reference, {"name": "language", "value": ""})
            told.setdefault("completion", []).extend(completed.completion.values)
    called = await server.call_tool("add", {"a": 1})
    filled = await server.get_prompt("review", {"language": "go"})
    told["local"] = [
        isinstance(called, types.CallToolResult) and isinstance(called.content[0], types.TextContent),
        isinstance((await server.list_tools())[0], types.Tool),
        isinstance(filled, types.GetPromptResult) and isinstance(filled.messages[0], types.PromptMessage),
    ]
    told["logged"] = logged
    told["refused"] = [
        refused(lambda: server.add_prompt(object())),
        refused(lambda: MCPServer("m", tools=[add])),
        refused(lambda: server._tool_manager),
    ]
    token = AccessToken(token="t", client_id="c", scopes=["read"])
    mcpace.server.auth.principal.remember(token)
    told["token"] = get_access_token() is token
    told["memory"] = await memory()
    return told


async def memory() -> list[Any]:
    """The official SDK's own client, connected in memory, twice."""
    seen = []
    for mode in ("auto", "legacy"):
        if sys.argv[1] == "1":
            async with create_connected_server_and_client_session(server._mcp_server) as client:
                tools = await client.list_tools()
                result = await client.call_tool("add", {"a": 3})
        else:
            from mcp import Client

            async with Client(server, mode=mode) as client:
                tools = await client.list_tools()
                result = await client.call_tool("add", {"a": 3})
        seen.append([len(tools.tools), result.content[0].text])
    return seen


print(json.dumps(asyncio.run(main())))
