"""A program that swaps only the server class: objects of the official SDK's types, and the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from typing import Any

import anyio.from_thread
import pytest

from mcpace import Context, MCPServer
from mcpace.testing import connect_sync
from mcpace.types import (
    CallToolResult,
    EmptyResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    PingRequest,
    ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams,
    Tool,
)
from support import adoption

LIMIT_S = 300
PROGRAM = adoption.ROOT / "tests" / "server" / "swapped" / "program.py"


@pytest.mark.network
@pytest.mark.parametrize(("sdk", "line"), [(adoption.SDKS[0], "1"), (adoption.SDKS[1], "2")])
def test_objects_of_the_sdk_are_taken(sdk: adoption.Sdk, line: str) -> None:
    done = subprocess.run(
        [str(adoption.interpreter(sdk)), str(PROGRAM), line],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, "PYTHONPATH": str(adoption.ROOT / "python")},
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    prompt, tool, private = told.pop("refused")
    assert "add_prompt takes a Prompt" in prompt
    assert "tools= takes Tools" in tool
    assert "use add_tool(), remove_tool() and await list_tools()" in private
    assert told == {
        "ask": "yes",
        "sample": "sampled",
        "picture": ["image", "image/png"],
        "notify": "notified",
        "local": [True, True, True],
        "logged": ["sent"],
        "around": "n True True",
        "add": {"result": 3},
        "prompt": ["Review rust", "Review"],
        "resource": "first",
        "completion": ["prompt review", "template note://{x}"],
        "token": True,
        "memory": [[6, "4"], [6, "4"]],
    }


def test_a_server_entered_without_the_sdk_names_the_client_to_use() -> None:
    async def enter() -> None:
        async with MCPServer("plain"):
            raise AssertionError("never")

    with pytest.raises(RuntimeError, match=r"mcp is not installed; mcpace\.Client\(server\)"):
        asyncio.run(enter())


def test_members_of_models_have_their_wire_names_too() -> None:
    result = CallToolResult(content=[])
    assert (result.isError, result.structuredContent) == (False, None)  # type: ignore[attr-defined]
    assert Tool(name="t", input_schema={"type": "object"}).inputSchema == {"type": "object"}  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="is_wrong"):
        _ = result.is_wrong  # type: ignore[attr-defined]


def test_the_context_of_a_call_is_found_without_a_parameter() -> None:
    server = MCPServer("around")
    other = MCPServer("other")

    def helper() -> str:
        return server.get_context().request_id

    @server.tool()
    def direct() -> bool:
        return server.get_context().request_id is not None

    @server.tool()
    def indirect() -> bool:
        return helper() is not None

    @server.tool()
    def elsewhere() -> bool:
        return repr(other.get_context()) == "Context()"

    with connect_sync(server) as client:
        for name in ("direct", "indirect", "elsewhere"):
            assert client.call_tool(name, {}).structured_content == {"result": True}, name
    assert repr(server.get_context()) == "Context()"


def test_a_plain_function_asks_the_event_loop_by_anyio() -> None:
    server = MCPServer("threads")

    async def loop_name() -> str:
        return type(asyncio.get_running_loop()).__name__

    @server.tool()
    def asks(times: int, ctx: Context) -> str:
        anyio.from_thread.check_cancelled()
        return f"{times} {ctx.request_id is not None} {bool(anyio.from_thread.run(loop_name))}"

    with connect_sync(server) as client:
        assert client.call_tool("asks", {"times": 2}).content[0].text == "2 True True"


def test_a_context_has_the_parameters_of_both_releases() -> None:
    assert Context[Any, Any, Any] == Context[Any, Any]  # type: ignore[misc]
    assert Context[Any].__origin__ is Context  # type: ignore[attr-defined]


def test_notifications_and_requests_are_sent_by_their_types() -> None:
    server = MCPServer("sending")
    failures = []

    @server.tool()
    async def send(ctx: Context) -> str:
        params = LoggingMessageNotificationParams(level="warning", data={"n": 1})
        await ctx.session.send_notification(LoggingMessageNotification(params=params))
        updated = ResourceUpdatedNotificationParams(uri="note://1")
        await ctx.session.send_notification(ResourceUpdatedNotification(params=updated))
        for unknown in (ctx.session.send_notification, ctx.session.send_request):
            with pytest.raises(ValueError) as raised:
                await unknown(PingRequest(), EmptyResult)
            failures.append(str(raised.value))
        return "sent"

    logged = []
    with connect_sync(server, logging_callback=lambda message: logged.append(message.data), log_level="info") as client:
        assert client.call_tool("send", {}).content[0].text == "sent"
    assert logged == [{"n": 1}]
    assert failures[0].startswith("ping is not a notification of a call; server.notify(")
    assert failures[1] == "ping is not a request that a server sends"
