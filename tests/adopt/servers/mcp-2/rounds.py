"""Tools that need several rounds: answers by the client before the body runs (2026-07-28), and by hand."""

from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from pydantic import BaseModel

mcp = MCPServer("Rounds")


class Login(BaseModel):
    username: str


async def login(ctx: Context) -> Elicit[Login]:
    return Elicit("What is your username?", Login)


@mcp.tool()
async def whoami(who: Annotated[Login, Resolve(login)]) -> str:
    """Asks first"""
    return f"you are {who.username}"


@mcp.tool()
async def by_hand(ctx: Context) -> str | InputRequiredResult:
    if ctx.input_responses is None:
        question = ElicitRequestFormParams(
            message="How many?", requested_schema={"type": "object", "properties": {"n": {"type": "integer"}}}
        )
        return InputRequiredResult(input_requests={"n": ElicitRequest(params=question)}, request_state="round-2")
    return f"{ctx.request_state}: {ctx.input_responses['n'].content}"
