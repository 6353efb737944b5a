"""After the quickstart of the official SDK 2.x."""

from mcp.server import MCPServer

mcp = MCPServer("Demo", instructions="Adds and greets.", version="1.2.3")


@mcp.tool()
def add(a: int, b: int) -> int:
    """Add two numbers"""
    return a + b


@mcp.tool()
def echo(text: str) -> str:
    """Says the text again"""
    return text


@mcp.tool(structured_output=False)
def shout(text: str, times: int = 1) -> str:
    return text.upper() * times


@mcp.tool()
async def echo_later(text: str) -> str:
    """Says the text again, from a coroutine"""
    return text


@mcp.resource("greeting://{name}")
def get_greeting(name: str) -> str:
    """Get a personalized greeting"""
    return f"Hello, {name}!"


@mcp.prompt()
def greet_user(name: str, style: str = "friendly") -> str:
    """Generate a greeting prompt"""
    styles = {
        "friendly": "Please write a warm, friendly greeting",
        "formal": "Please write a formal, professional greeting",
    }
    return f"{styles.get(style, styles['friendly'])} for someone named {name}."
