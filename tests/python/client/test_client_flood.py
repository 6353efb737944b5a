"""A server that sends more than its client's loop can process: queues are bounded, and dropped messages are
reported."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpace import Client, StdioServerParameters
from mcpace.client.asking import Callbacks, Soon

LIMIT_S = 60
MANY = 6_000
HELD = 1_024

# Writes the wire format itself. All messages but those that fit into a pipe are written when the named pipe opens.
SERVER = """
import json, sys
def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
for line in sys.stdin:
    asked = json.loads(line)
    params = asked.get("params") or {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "logging": {}},
            "serverInfo": {"name": "flood", "version": "1"}}
        say({"id": asked["id"], "result": result})
    elif asked["method"] == "tools/call":
        many, way = params["arguments"]["many"], params["arguments"]["way"]
        token = params["_meta"].get("progressToken") if "_meta" in params else None
        log = lambda data: say({"method": "notifications/message", "params": {"level": "info", "data": data}})
        log("first")
        sys.stdout.flush()
        say({"method": "notifications/tools/list_changed"})
        for number in range(many):
            log(str(number))
            if token is not None:
                say({"method": "notifications/progress", "params": {"progressToken": token, "progress": number + 1}})
        say({"id": asked["id"], "result": {"content": []}})
        # More than fits into a pipe, so the client has read all earlier messages once it is written.
        for _ in range(200):
            say({"method": "notifications/message", "params": {"level": "info", "data": "x" * 1000}})
        sys.stdout.flush()
        open(way, "w").close()
    elif "id" in asked:
        say({"id": asked["id"], "error": {"code": -32601, "message": "no"}})
    sys.stdout.flush()
"""


def test_a_busy_loop_holds_so_much_and_drops_the_oldest_log_messages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    way = tmp_path / "written"
    os.mkfifo(way)
    logged: list[Any] = []
    progress: list[float] = []
    news: list[str] = []
    end = asyncio.Event()

    def log(params: Any) -> None:
        logged.append(params.data)
        if params.data == "first":
            # The loop is blocked until the server has written everything.
            os.close(os.open(way, os.O_RDONLY))
        if len(logged) > 1:
            end.set()

    async def hear_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    async def work() -> None:
        command = StdioServerParameters(command=sys.executable, args=[str(tmp_path / "server.py")])
        hear = lambda told: news.append(told.method)  # noqa: E731
        async with Client(command, mode="legacy", logging_callback=log, message_handler=hear) as client:
            arguments = {"many": MANY, "way": str(way)}
            await client.call_tool("flood", arguments, progress_callback=hear_progress)
            await end.wait()

    with caplog.at_level(logging.WARNING, "mcpace.client"):
        asyncio.run(asyncio.wait_for(work(), LIMIT_S))
    assert logged[0] == "first"
    # The messages before the loop was blocked, those in the queue, and those that came at the end.
    assert len(logged) < MANY / 2, len(logged)
    # A notification of a change is kept, although it is the oldest.
    assert "notifications/tools/list_changed" in news
    # The newest progress notification is kept.
    assert len(progress) < MANY / 2
    assert progress[-1] == MANY
    said = [record.getMessage() for record in caplog.records]
    assert len([one for one in said if "the server sent notifications faster" in one]) == 1, said
    assert len([one for one in said if "progress faster" in one]) == 1, said


def test_callbacks_that_take_their_time_are_not_heaped_up(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Any] = []

    async def work() -> None:
        gate = asyncio.Event()

        async def slow(told: Any) -> None:
            await gate.wait()
            heard.append(told.params["data"] if told.params else told.method)

        soon = Soon(Callbacks(None, messages=slow))
        soon.hear("notifications/tools/list_changed", None)
        for number in range(MANY):
            soon.hear("notifications/message", json.dumps({"level": "info", "data": number}))
        soon.hear("notifications/prompts/list_changed", None)
        assert len(soon.tasks) + len(soon.later.news) <= 2 * HELD
        gate.set()
        while soon.tasks:
            await asyncio.wait(soon.tasks)
            await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING, "mcpace.client"):
        asyncio.run(asyncio.wait_for(work(), LIMIT_S))
    assert heard[0] == "notifications/tools/list_changed"
    assert heard[-1] == "notifications/prompts/list_changed"
    assert heard[-2] == MANY - 1
    assert len(heard) < 2 * HELD
    assert len(caplog.records) == 1
