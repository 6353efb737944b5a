"""A server with invalid answers: the client reports each in one sentence, with a code."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
from typing import Any

import pytest

from mcpace import Client, StdioServerParameters, SyncClient
from mcpace.client import ClientError

LIMIT_S = 30

# Answers every request except `initialize` with the text in its arguments.
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = sys.argv[1]
    for line in sys.argv[2:]:
        print(line)
    if asked["method"] == "initialize":
        told = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "hostile", "version": "1"}}
        result = json.dumps(told)
    sys.stdout.write('{"jsonrpc": "2.0", "id": %s, "result": %s}\\n' % (json.dumps(asked["id"]), result))
    sys.stdout.flush()
"""


def answering(result: Any, *before: dict[str, Any]) -> StdioServerParameters:
    lines = [json.dumps({"jsonrpc": "2.0", **message}) for message in before]
    return StdioServerParameters(command=sys.executable, args=["-c", SERVER, json.dumps(result), *lines])


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"content": "secret", "tools": "secret"}, "should be a valid array"),
        ({"content": [{"type": "text"}], "tools": [{"title": "secret"}]}, "Field required"),
        (None, "should be an object"),
        (["secret"], "should be an object"),
    ],
)
def test_a_result_of_another_shape_is_an_error_of_the_clients(result: Any, words: str) -> None:
    async def work() -> None:
        async with Client(answering(result), mode="legacy") as client:
            for request in (client.call_tool("any"), client.list_tools()):
                with pytest.raises(ClientError, match=words) as caught:
                    await request
                assert caught.value.code == "bad-reply"
                assert "\n" not in str(caught.value)
                assert "secret" not in str(caught.value)

    asyncio.run(asyncio.wait_for(work(), LIMIT_S))
    with SyncClient(answering(result), mode="legacy", read_timeout_seconds=LIMIT_S) as client:
        for request in (lambda: client.call_tool("any"), client.list_tools):
            with pytest.raises(ClientError, match=words):
                request()


@pytest.mark.parametrize("params", [{"level": "secret", "data": 1}, ["secret"], None])
def test_news_of_another_shape_are_passed_over_and_said_once(params: Any, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Any] = []

    async def hear(params: Any) -> None:
        heard.append(params.data)

    news = {"method": "notifications/message"} | ({} if params is None else {"params": params})
    good = {"method": "notifications/message", "params": {"level": "info", "data": "good"}}

    async def work() -> None:
        async with Client(answering({"content": []}, news, news, good), mode="legacy", logging_callback=hear) as client:
            await client.call_tool("any")

    with caplog.at_level(logging.WARNING, "mcpace.client"):
        asyncio.run(asyncio.wait_for(work(), LIMIT_S))
    assert set(heard) == {"good"}
    [record] = caplog.records
    assert "not of the protocol's shape" in record.getMessage()
    assert record.exc_info is None


def test_a_server_that_accepts_and_says_nothing_is_waited_for_as_long_as_a_reply() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"

        async def work() -> None:
            async with Client(url, read_timeout_seconds=0.05):
                pass

        with pytest.raises(ClientError) as caught:
            asyncio.run(asyncio.wait_for(work(), LIMIT_S))
        assert caught.value.code == "time-limit"
        with pytest.raises(ClientError), SyncClient(url, read_timeout_seconds=0.05):
            pass
