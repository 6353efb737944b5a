"""Two calls at once on real servers: parallel, behind a lock, behind a lock of a session, on a blocked event loop."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest

from mcpace.lab.explain.ladder import climb_ladder, open_session
from mcpace.lab.explain.overlap import overlap_calls, proven_cause
from mcpace.lab.load.plan import Closed, HttpTarget, LoadPlan, Operation
from mcpace.report.model.ladder import Ladder, Overlap
from mcpace.report.words.ladder import overlap_sentences

CALL_S = 0.2
Waiting = Literal["sleeps", "blocks", "blocks-before-replies", "locks", "locks-session"]


class Server:
    """An MCP server on one event loop, whose tool waits in one of five ways."""

    def __init__(self, waiting: Waiting) -> None:
        self.waiting = waiting
        self.locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.sessions = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            except asyncio.IncompleteReadError:
                writer.close()
                return
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            body = await reader.readexactly(int(fields.get("content-length", 0)))
            status, more, reply = "404 Not Found", "", b""
            if head.startswith("post"):
                status, more, reply = await self.answer(json.loads(body), fields.get("mcp-session-id", ""))
            writer.write(
                f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more}"
                f"content-length: {len(reply)}\r\n\r\n".encode()
                + reply
            )

    async def answer(self, asked: dict[str, Any], session: str) -> tuple[str, str, bytes]:
        if "id" not in asked:
            return "202 Accepted", "", b""
        result: dict[str, Any] = {}
        more = ""
        if asked["method"] == "initialize":
            self.sessions += 1
            more = f"mcp-session-id: s{self.sessions}\r\n"
            server = {"name": "one", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
        elif asked["method"] == "tools/list":
            result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        elif asked["method"] == "tools/call":
            result = {"content": []}
            if asked["params"]["name"] == "t":
                await self.wait(session)
        return "200 OK", more, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()

    async def wait(self, session: str) -> None:
        match self.waiting:
            case "sleeps":
                await asyncio.sleep(CALL_S)
            case "blocks":
                time.sleep(CALL_S)
            case "blocks-before-replies":
                time.sleep(CALL_S)
                for _ in range(10):  # the loop takes the other call before it sends this reply
                    await asyncio.sleep(0)
            case "locks" | "locks-session":
                async with self.locks[session if self.waiting == "locks-session" else ""]:
                    await asyncio.sleep(CALL_S)


async def end_tasks(listening: asyncio.Server) -> None:
    listening.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@contextmanager
def served(waiting: Waiting) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    listening = asyncio.run_coroutine_threadsafe(
        asyncio.start_server(Server(waiting).serve, "127.0.0.1", 0), loop
    ).result(10)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
    finally:
        asyncio.run_coroutine_threadsafe(end_tasks(listening), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def measure_ladder(url: str) -> Ladder:
    plan = LoadPlan(
        target=HttpTarget(url), revision="2025-06-18", model=Closed(vus=1), duration_s=1.0, warm_up_s=0.0,
        timeout_s=10.0, operations=[Operation(name="t", kind="call", tool="t", arguments={})],
    )  # fmt: skip
    with open_session(plan) as session:
        ladder = climb_ladder(plan, session, 5.0)
        overlap_calls(plan, session, ladder, 5.0)
    return ladder


@pytest.mark.parametrize(
    ("waiting", "orders", "cause", "words"),
    [
        ("sleeps", ["parallel"], None, "they run at the same time."),
        ("locks", ["serial", "serial"], None, "doesn't wait. The calls share a lock"),
        ("locks-session", ["serial", "parallel"], "serial-session", "In two sessions they run at the same time."),
        ("blocks", ["serial", "serial"], "blocked-event-loop", "the server answers nothing else while a tool runs."),
        ("blocks-before-replies", ["shared", "shared"], "blocked-event-loop", "the server answers nothing else"),
    ],
)
def test_two_calls_show_what_waits(waiting: Waiting, orders: list[str], cause: str | None, words: str) -> None:
    with served(waiting) as url:
        ladder = measure_ladder(url)
    assert [one.order for one in ladder.overlaps] == orders, ladder.overlaps
    assert ladder.cause == cause, ladder.overlaps
    [sentence] = overlap_sentences(ladder)
    assert words in sentence


def two_calls(order: Literal["serial", "shared"], ping_s: float, sessions: int = 1) -> Overlap:
    return Overlap(
        sessions=sessions, repeats=1, first_s=6.0 if order == "shared" else 3.0, both_s=6.0, ping_s=ping_s,
        order=order, ping_waited=True,
    )  # fmt: skip


@pytest.mark.parametrize(("ping_s", "cause"), [(5.2, "blocked-event-loop"), (2.0, None)])
def test_a_loop_that_ends_two_calls_together_now_and_then_is_blocked_where_each_ping_waits_for_the_end(
    ping_s: float, cause: str | None
) -> None:
    ladder = Ladder(overlaps=[two_calls("serial", 5.2), two_calls("shared", ping_s, sessions=2)])
    assert proven_cause(ladder, is_http=True) == cause
