"""A low-level server, its handlers its own."""

import mcp_types as types
from mcp.server.lowlevel import Server


async def list_tools(ctx, params):
    first = types.Tool(name="query", description="Asks", input_schema={"type": "object", "properties": {"q": {}}})
    region = {"type": "string", "x-mcp-header": "Region"}
    second = types.Tool(name="other", input_schema={"type": "object", "properties": {"region": region}})
    if params and params.cursor == "second":
        return types.ListToolsResult(tools=[second])
    return types.ListToolsResult(tools=[first], next_cursor="second")


async def call_tool(ctx, params):
    if params.name == "query":
        text = f"{params.arguments} of {ctx.lifespan_context}"
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content={"n": 1})
    raise ValueError(f"no tool {params.name}")


async def list_prompts(ctx, params):
    return types.ListPromptsResult(prompts=[types.Prompt(name="one")])


async def get_prompt(ctx, params):
    content = types.TextContent(type="text", text=params.name)
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


server = Server(
    "low-level",
    version="3",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
)
