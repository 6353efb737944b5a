"""Content of every kind: pictures, sound, embedded resources, whole results."""

import base64

from mcp.server import MCPServer
from mcp.server.mcpserver import Audio, Image
from mcp_types import CallToolResult, EmbeddedResource, ImageContent, ResourceLink, TextContent, TextResourceContents
from pydantic import BaseModel

mcp = MCPServer("Content")

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Answer(BaseModel):
    value: int


@mcp.tool()
def picture() -> Image:
    """Create a picture"""
    return Image(data=PIXEL, format="png")


@mcp.tool()
def sound() -> Audio:
    return Audio(data=b"RIFF", format="wav")


@mcp.tool()
def blocks() -> list[TextContent | ImageContent]:
    return [
        TextContent(type="text", text="first"),
        ImageContent(type="image", data="AAAA", mime_type="image/png"),
    ]


@mcp.tool()
def mixed(word: str) -> list:
    """Everything in one list"""
    return [word, Image(data=PIXEL, format="png"), {"a": 1}, 2.5, None, [word, [word]]]


@mcp.tool()
def embedded() -> EmbeddedResource:
    contents = TextResourceContents(uri="note://one", text="a note", mime_type="text/plain")
    return EmbeddedResource(type="resource", resource=contents)


@mcp.tool()
def link() -> ResourceLink:
    return ResourceLink(type="resource_link", uri="note://one", name="one")


@mcp.tool()
def whole() -> CallToolResult:
    """A result with everything, hidden data included"""
    return CallToolResult(
        content=[TextContent(type="text", text="visible")],
        structured_content={"hidden": 1},
        is_error=False,
        _meta={"note": "for the client alone"},
    )


@mcp.tool()
def whole_error() -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text="it went wrong")], is_error=True)


@mcp.tool()
def raw_bytes() -> bytes:
    return b"\x00\x01text"


@mcp.tool()
def model(value: int) -> Answer:
    return Answer(value=value)


@mcp.tool(structured_output=False)
def model_as_text(value: int) -> Answer:
    return Answer(value=value)


@mcp.tool()
def big(size: int) -> dict[str, str]:
    """Characters that JSON escapes, many of them"""
    return {"text": 'é"\\\n\u2028\x01<&' * size}
