"""Content blocks, pictures, sounds, lists of them, and values that are none."""

from __future__ import annotations

from typing import Any

from face import Annotations, Audio, EmbeddedResource, Image, MCPServer, ResourceLink, TextContent, TextResourceContents

server = MCPServer("content")
PIXEL = bytes.fromhex("89504e470d0a1a0a")


@server.tool()
def text() -> TextContent:
    return TextContent(type="text", text="t", annotations=Annotations(audience=["user"], priority=0.5))


@server.tool()
def picture() -> Image:
    return Image(data=PIXEL)


@server.tool()
def jpeg() -> Image:
    return Image(data=PIXEL, format="JPEG")


@server.tool()
def sound() -> Audio:
    return Audio(data=b"RIFF", format="mp3")


@server.tool()
def mixed() -> list[Any]:
    return ["words", Image(data=PIXEL), {"a": 1}, 5, None, [TextContent(type="text", text="inner"), ("x", "y")]]


@server.tool()
def blocks() -> list[TextContent | Image]:
    return [TextContent(type="text", text="one"), Image(data=PIXEL)]


@server.tool()
def link() -> ResourceLink:
    return ResourceLink(type="resource_link", uri="note://1", name="one", mime_type="text/plain")


@server.tool()
def embedded() -> EmbeddedResource:
    contents = TextResourceContents(uri="note://1", text="inside", mime_type="text/markdown")
    return EmbeddedResource(type="resource", resource=contents)


@server.tool(structured_output=True)
def forced() -> TextContent:
    return TextContent(type="text", text="forced")


@server.tool()
def untyped_picture():
    return Image(data=PIXEL)


@server.tool()
def an_object():
    class Thing:
        def __str__(self) -> str:
            return "a thing"

    return {"thing": Thing()}


@server.tool()
def a_generator():
    yield 1
    yield 2


@server.tool()
def missing_file() -> Image:
    return Image(path="/nowhere/there.png")


@server.tool()
def numbers() -> list[float]:
    return [1.0, 2.5, 1e300]


@server.tool()
def lines() -> str:
    return "a\nb\tc\x00\x7f\u2028</script>"


def call(name: str, /, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return ("tools/call", {"name": name, "arguments": arguments})


NAMES = (
    "text picture jpeg sound mixed blocks link embedded forced untyped_picture an_object a_generator missing_file "
    "numbers lines"
)
DIALOGUE = [("tools/list", {}), *(call(name) for name in NAMES.split())]
