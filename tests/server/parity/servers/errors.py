"""Failures: on purpose, by accident, as a protocol error, and by the caller."""

from __future__ import annotations

from typing import Any

from face import Context, MCPError, MCPServer, ResourceError, ResourceNotFoundError, ToolError
from pydantic import BaseModel

server = MCPServer("errors")


class Model(BaseModel):
    x: int


@server.tool()
def deliberate() -> str:
    raise ToolError("you asked for it")


@server.tool()
async def deliberate_async() -> str:
    raise ToolError("later")


@server.tool()
def crash() -> str:
    raise RuntimeError("secret detail")


@server.tool()
async def crash_async() -> str:
    return str(1 // 0)


@server.tool()
def protocol() -> str:
    raise MCPError(code=-32050, message="of the protocol", data={"why": "because"})


@server.tool()
def inner_validation() -> str:
    Model(x="no")  # type: ignore[arg-type]
    return "never"


@server.tool()
def wrong_type() -> str:
    return 5  # type: ignore[return-value]


@server.tool()
def wrong_number() -> int:
    return "many"  # type: ignore[return-value]


@server.tool()
async def reads(uri: str, ctx: Context) -> str:
    return "".join(str(one.content) for one in await ctx.read_resource(uri))


@server.tool()
def exits() -> str:
    raise ValueError("a" * 50)


@server.resource("bad://deliberate/{x}")
def bad_deliberate(x: str) -> str:
    raise ResourceError(f"no {x}")


@server.resource("bad://missing/{x}")
def bad_missing(x: str) -> str:
    raise ResourceNotFoundError(f"no {x} here")


@server.resource("bad://crash/{x}")
def bad_crash(x: str) -> str:
    raise RuntimeError("secret")


@server.resource("bad://number/{x}")
def bad_number(x: int) -> str:
    return str(x)


@server.resource("bad://static")
def bad_static() -> str:
    raise RuntimeError("secret")


@server.resource("bad://protocol/{x}")
def bad_protocol(x: str) -> str:
    raise MCPError(code=-32051, message=f"protocol {x}")


@server.prompt()
def bad_prompt(x: str) -> str:
    raise RuntimeError("secret")


@server.prompt()
def protocol_prompt() -> str:
    raise MCPError(code=-32052, message="prompt protocol")


@server.prompt()
def number_prompt(x: int) -> str:
    return str(x)


def call(name: str, /, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return ("tools/call", {"name": name, "arguments": arguments})


DIALOGUE = [
    call("deliberate"),
    call("deliberate_async"),
    call("crash"),
    call("crash_async"),
    call("protocol"),
    call("inner_validation"),
    call("wrong_type"),
    call("wrong_number"),
    call("exits"),
    call("nowhere"),
    call("reads", uri="bad://number/5"),
    call("reads", uri="bad://deliberate/5"),
    call("reads", uri="bad://crash/5"),
    call("reads", uri="bad://protocol/5"),
    call("reads", uri="other://x"),
    ("tools/call", {"name": "deliberate", "arguments": "text"}),
    ("resources/read", {"uri": "bad://deliberate/1"}),
    ("resources/read", {"uri": "bad://missing/1"}),
    ("resources/read", {"uri": "bad://crash/1"}),
    ("resources/read", {"uri": "bad://number/x"}),
    ("resources/read", {"uri": "bad://static"}),
    ("resources/read", {"uri": "bad://protocol/1"}),
    ("resources/read", {"uri": "other://x"}),
    ("prompts/get", {"name": "bad_prompt", "arguments": {"x": "1"}}),
    ("prompts/get", {"name": "bad_prompt"}),
    ("prompts/get", {"name": "protocol_prompt"}),
    ("prompts/get", {"name": "number_prompt", "arguments": {"x": "n"}}),
    ("prompts/get", {"name": "nowhere"}),
]
