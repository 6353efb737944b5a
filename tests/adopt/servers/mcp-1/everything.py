"""A server with all that the client programs of tests/interop ask for."""

import asyncio

from mcp.server.fastmcp import Context, FastMCP

mcp = FastMCP("everything")


@mcp.tool()
def echo(text: str) -> str:
    return text


@mcp.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100)
        # The TypeScript clients forget whom progress is for when they read it together with the result.
        await asyncio.sleep(0.05)
    return "done"


@mcp.resource("test://static-text")
def static_text() -> str:
    return "This is the content of the static text resource."


@mcp.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"
