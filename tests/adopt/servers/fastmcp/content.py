"""Content of every kind: pictures, sound, files, embedded resources, whole results."""

import base64

from fastmcp import FastMCP
from fastmcp.tools import ToolResult
from fastmcp.utilities.types import Audio, File, Image
from mcp.types import EmbeddedResource, TextContent, TextResourceContents
from pydantic import BaseModel

mcp = FastMCP("Content")

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Answer(BaseModel):
    value: int


@mcp.tool
def picture() -> Image:
    """Create a picture"""
    return Image(data=PIXEL, format="png")


@mcp.tool
def sound() -> Audio:
    return Audio(data=b"RIFF", format="wav")


@mcp.tool
def file() -> File:
    return File(data=b"a,b\n", format="csv", name="table")


@mcp.tool
def mixed(word: str) -> list:
    """Everything in one list"""
    return [word, Image(data=PIXEL, format="png"), {"a": 1}, 2.5]


@mcp.tool
def embedded() -> EmbeddedResource:
    contents = TextResourceContents(uri="note://one", text="a note")
    return EmbeddedResource(type="resource", resource=contents)


@mcp.tool
def whole() -> ToolResult:
    """A result with everything, hidden data included"""
    return ToolResult(
        content=[TextContent(type="text", text="visible")],
        structured_content={"hidden": 1},
        meta={"note": "for the client alone"},
    )


@mcp.tool
def raw_bytes() -> bytes:
    return b"\x00\x01text"


@mcp.tool
def model(value: int) -> Answer:
    return Answer(value=value)


@mcp.tool(output_schema=None)
def model_as_text(value: int) -> Answer:
    return Answer(value=value)


@mcp.tool
def big(size: int) -> dict[str, str]:
    """Characters that JSON escapes, many of them"""
    return {"text": 'é"\\\n\u2028\x01<&' * size}
