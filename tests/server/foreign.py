"""A server of mcpace whose author kept the official SDK's types. Run where both are; prints what came out."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Annotated, Any

from mcp.server.mcpserver import Context as SdkContext
from mcp.server.mcpserver import Image as SdkImage
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.mcpserver.resources import TextResource
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Icon, TextContent, ToolAnnotations
from pydantic import BaseModel

from mcpace import Context, MCPServer
from mcpace import ToolError as OwnToolError
from mcpace.types import wire

server = MCPServer("foreign", icons=[Icon(src="data:,")])


class Point(BaseModel):
    x: int


@server.tool(annotations=ToolAnnotations(read_only_hint=True), icons=[Icon(src="data:,x")])
def annotated() -> str:
    return "x"


@server.tool()
def block() -> TextContent:
    return TextContent(type="text", text="block")


@server.tool()
def picture() -> list[SdkImage | str]:
    return [SdkImage(data=b"png"), "text"]


@server.tool()
def whole() -> Annotated[CallToolResult, Point]:
    return CallToolResult(content=[TextContent(type="text", text="w")], structured_content={"x": 1}, _meta={"m": 1})


@server.tool()
def sdk_context(ctx: SdkContext) -> str:
    return type(ctx).__module__


@server.tool()
def deliberate() -> str:
    raise ToolError("on purpose")


@server.tool()
def protocol() -> str:
    raise MCPError(code=-32050, message="protocol", data={"a": 1})


@server.resource("gone://{x}")
def gone(x: str) -> str:
    raise ResourceNotFoundError(f"no {x}")


@server.prompt()
def prompt() -> list[UserMessage]:
    return [UserMessage("hello"), UserMessage(SdkImage(data=b"png"))]


server.add_resource(TextResource(uri="text://x", name="x", text="words"))


async def outcome(call: Any) -> Any:
    try:
        result = await call
    except OwnToolError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__module__}.{type(error).__name__}: {error}"
    if isinstance(result, list):
        return [wire(one) if hasattr(one, "model_dump") else one.content for one in result]
    return wire(result)


async def main() -> None:
    assert Context is not SdkContext
    names = ["block", "picture", "whole", "sdk_context", "deliberate", "protocol"]
    found = {name: await outcome(server.call_tool(name, {})) for name in names}
    found["tools"] = await outcome(server.list_tools())
    found["gone"] = await outcome(server.read_resource("gone://x"))
    found["text"] = await outcome(server.read_resource("text://x"))
    found["prompt"] = await outcome(server.get_prompt("prompt"))
    found["finished"] = [
        json.loads(server.registry.tools[name].output.finish(server.registry.tools[name].fn()))
        for name in ("block", "picture", "whole")
    ]
    json.dump(found, sys.stdout)


asyncio.run(main())
