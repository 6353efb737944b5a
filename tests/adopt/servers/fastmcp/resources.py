"""Resources, templates and prompts of every kind."""

from fastmcp import FastMCP
from fastmcp.prompts import Message
from fastmcp.resources import ResourceContent, ResourceResult, TextResource
from mcp.types import Icon

mcp = FastMCP("Resources", website_url="https://example.com", icons=[Icon(src="https://example.com/icon.png")])

mcp.add_resource(TextResource(uri="text://fixed", name="fixed", text="Always this", mime_type="text/markdown"))


@mcp.resource("config://settings", tags={"config"}, meta={"team": "core"})
def settings() -> str:
    """Get application settings."""
    return '{"theme": "dark"}'


@mcp.resource("config://json", mime_type="application/json", name="as-json", title="As JSON")
def as_json() -> ResourceResult:
    return ResourceResult(contents=[ResourceContent(content={"theme": "dark"}, mime_type="application/json")])


@mcp.resource("data://bytes", mime_type="image/png")
async def data() -> bytes:
    return b"\x89PNG\r\n"


@mcp.resource("data://fails")
def fails() -> str:
    raise RuntimeError("can't be read")


@mcp.resource("file://documents/{name}", mime_type="text/markdown", description="A document")
def document(name: str) -> str:
    return f"# {name}"


@mcp.resource("path://{path*}")
def path(path: str) -> str:
    """A variable that holds slashes"""
    return path


@mcp.resource("search://{word}{?limit}")
def search(word: str, limit: int = 10) -> str:
    """A variable of the query"""
    return f"{word} {limit}"


@mcp.resource("weather://{city}/{day}")
async def weather(city: str, day: int) -> str:
    """Weather by city and day"""
    return f"{city} {day + 1}"


@mcp.resource("broken://{name}")
def broken(name: str) -> str:
    raise ValueError(f"no {name}")


@mcp.prompt(title="Code Review", tags={"code"})
def review_code(code: str) -> str:
    return f"Please review this code:\n\n{code}"


@mcp.prompt(name="debug", description="Debug assistant")
def debug_error(error: str, level: int = 1) -> list[Message]:
    return [
        Message("I'm seeing this error:"),
        Message(f"{error} at {level}"),
        Message("I'll help debug that. What have you tried so far?", role="assistant"),
    ]


@mcp.prompt
def no_good(word: str) -> str:
    raise ValueError(f"no prompt for {word}")


@mcp.tool
def count() -> int:
    return 1
