"""A low-level server, its handlers its own."""

import mcp.types as types
from mcp.server.lowlevel import Server

server = Server("low-level", version="3")


@server.list_tools()
async def list_tools(request: types.ListToolsRequest) -> types.ListToolsResult:
    first = types.Tool(name="query", description="Asks", inputSchema={"type": "object", "properties": {"q": {}}})
    second = types.Tool(name="other", inputSchema={"type": "object", "required": ["a"]})
    if request and request.params and request.params.cursor == "second":
        return types.ListToolsResult(tools=[second])
    return types.ListToolsResult(tools=[first], nextCursor="second")


@server.call_tool()
async def call_tool(name, arguments):
    if name == "query":
        return [types.TextContent(type="text", text=f"{arguments} of {server.request_context.lifespan_context}")]
    raise ValueError(f"no tool {name}")


@server.list_prompts()
async def list_prompts() -> list[types.Prompt]:
    return [types.Prompt(name="one")]


@server.get_prompt()
async def get_prompt(name, arguments):
    content = types.TextContent(type="text", text=name)
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])
