"""Resources, templates, prompts and completion of every kind."""

from mcp.server import MCPServer
from mcp.server.mcpserver.prompts import base
from mcp.server.mcpserver.resources import TextResource
from mcp_types import Completion, Icon, PromptReference, ResourceTemplateReference

mcp = MCPServer("Resources", website_url="https://example.com", icons=[Icon(src="https://example.com/icon.png")])

mcp.add_resource(TextResource(uri="text://fixed", name="fixed", text="Always this", mime_type="text/markdown"))


@mcp.resource("config://settings")
def settings() -> str:
    """Get application settings."""
    return '{"theme": "dark"}'


@mcp.resource("config://json", mime_type="application/json", name="as-json", title="As JSON")
def as_json() -> dict[str, object]:
    return {"theme": "dark", "sizes": [1, 2.5], "none": None, "word": "Tōkyō"}


@mcp.resource("data://bytes", mime_type="image/png")
async def data() -> bytes:
    return b"\x89PNG\r\n"


@mcp.resource("data://fails")
def fails() -> str:
    raise RuntimeError("can't be read")


@mcp.resource("file://documents/{name}", mime_type="text/markdown", description="A document")
def document(name: str) -> str:
    return f"# {name}"


@mcp.resource("weather://{city}/{day}")
async def weather(city: str, day: int) -> dict[str, object]:
    """Weather by city and day"""
    return {"city": city, "day": day}


@mcp.resource("broken://{name}")
def broken(name: str) -> str:
    raise ValueError(f"no {name}")


@mcp.prompt(title="Code Review")
def review_code(code: str) -> str:
    return f"Please review this code:\n\n{code}"


@mcp.prompt(name="debug", description="Debug assistant")
def debug_error(error: str, level: int = 1) -> list[base.Message]:
    return [
        base.UserMessage("I'm seeing this error:"),
        base.UserMessage(f"{error} at {level}"),
        base.AssistantMessage("I'll help debug that. What have you tried so far?"),
    ]


@mcp.prompt()
async def from_dict() -> list[dict[str, object]]:
    return [{"role": "assistant", "content": {"type": "text", "text": "as a dict"}}]


@mcp.prompt()
def no_good(word: str) -> str:
    raise ValueError(f"no prompt for {word}")


@mcp.completion()
async def complete(ref, argument, context):
    if isinstance(ref, ResourceTemplateReference) and argument.name == "city":
        known = ["Paris", "Prague", "Porto"]
        return Completion(values=[name for name in known if name.startswith(argument.value)], has_more=False)
    if isinstance(ref, PromptReference) and argument.name == "error":
        before = context.arguments if context else None
        return Completion(values=[f"after {sorted((before or {}).items())}"], total=1)
    return None


@mcp.tool()
def count() -> int:
    return 1
