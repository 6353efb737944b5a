"""The context: what it knows, what it tells, what it asks; lifespan; resolvers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any

from face import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    InputRequiredResult,
    ListRoots,
    MCPServer,
    Resolve,
)
from pydantic import BaseModel


@dataclass
class State:
    greeting: str


@contextlib.asynccontextmanager
async def lifespan(server: MCPServer[State]) -> AsyncIterator[State]:
    assert server.name == "contexts"
    yield State("hello")


server = MCPServer("contexts", lifespan=lifespan)


class Name(BaseModel):
    name: str
    times: int = 1


@server.tool()
def sync_context(x: int, ctx: Context) -> str:
    return f"{x} {ctx.mcp_server.name}"


@server.tool()
async def state(ctx: Context[State]) -> str:
    return ctx.request_context.lifespan_context.greeting


@server.tool()
async def optional_context(x: int = 1, ctx: Context | None = None) -> str:
    return f"{x} {ctx is not None}"


@server.tool()
async def known(ctx: Context) -> dict[str, Any]:
    return {
        "version": ctx.protocol_version,
        "method": ctx.request_context.method,
        "header": (ctx.headers or {}).get("x-test"),
        "state": ctx.request_state,
        "responses": ctx.input_responses,
    }


@server.tool()
async def progress(ctx: Context) -> str:
    await ctx.report_progress(1, 2, "half")
    return "done"


def plain_value(x: int) -> int:
    return x * 10


async def whole(x: int, ten: Annotated[int, Resolve(plain_value)], ctx: Context) -> str:
    return f"{x} {ten} {ctx.mcp_server.name}"


@server.tool()
async def resolved(x: int, text: Annotated[str, Resolve(whole)], ten: Annotated[int, Resolve(plain_value)]) -> str:
    return f"{text} {ten}"


def ask_name(x: int) -> Name | Elicit[Name]:
    return Elicit(f"Who for {x}?", Name) if x else Name(name="nobody")


@server.tool()
async def asks(x: int, who: Annotated[Name, Resolve(ask_name)]) -> str:
    return f"{who.name} {who.times}"


@server.tool()
async def outcome(x: int, who: Annotated[ElicitationResult[Name], Resolve(ask_name)]) -> str:
    return who.data.name if isinstance(who, AcceptedElicitation) else who.action


def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def roots(
    found: Annotated[Any, Resolve(ask_roots)], who: Annotated[Name, Resolve(lambda: Elicit("Who?", Name))]
) -> str:
    return f"{[str(root.uri) for root in found.roots]} {who.name}"


@server.tool()
async def by_hand(ctx: Context) -> str | InputRequiredResult:
    if ctx.input_responses is None:
        return InputRequiredResult(
            input_requests={
                "q": {
                    "method": "elicitation/create",
                    "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
                }
            },  # type: ignore[dict-item]
            request_state="first",
        )
    return f"{ctx.request_state} {ctx.input_responses['q'].action}"  # type: ignore[union-attr]


@server.resource("state://{key}")
async def shared(key: str, ctx: Context[State]) -> str:
    return f"{key} {ctx.request_context.lifespan_context.greeting}"


@server.prompt()
async def greet(ctx: Context[State]) -> str:
    return ctx.request_context.lifespan_context.greeting


def call(name: str, /, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return ("tools/call", {"name": name, "arguments": arguments})


ABLE = {"elicitation": {"form": {}}, "roots": {}, "sampling": {}}


def able(request: tuple[str, dict[str, Any]], *answers: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A request of a client that can answer; the answers are given in the rounds after it (2026-07-28)."""
    return (*request, {"capabilities": ABLE, "answers": list(answers)})


ADA = {"action": "accept", "content": {"name": "Ada", "times": 2}}

DIALOGUE = [
    ("tools/list", {}),
    call("sync_context", x=1),
    call("state"),
    call("optional_context"),
    call("known"),
    call("progress"),
    call("resolved", x=2),
    call("asks", x=0),
    call("asks", x=1),
    able(call("asks", x=1)),
    able(call("asks", x=1), ADA),
    able(call("asks", x=1), {"action": "decline"}),
    able(call("asks", x=1), {"action": "accept", "content": {"times": 2}}),
    able(call("asks", x=1), {"action": "accept"}),
    able(call("outcome", x=1), {"action": "cancel"}),
    able(call("outcome", x=1), ADA),
    able(call("roots"), {"*roots/list": {"roots": [{"uri": "file:///tmp"}]}, "*elicitation/create": ADA}),
    able(call("by_hand"), {"action": "accept", "content": {}}),
    ("resources/read", {"uri": "state://x"}),
    ("prompts/get", {"name": "greet"}),
]
