"""The compiled part of the Python server: fair sharing of the threads for sync functions among sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable

from mcpace import _core
from support.core_server import LIMIT_S, TEXT, listed, serving, sync
from support.http_client import HttpClient


def with_threads(threads: int, **tools: _core.Handler) -> _core.Server:
    made = _core.Server("test", "1", threads=threads)
    for name, handler in tools.items():
        # Functions with a limit never run inline.
        made.add_tool(listed(name), handler, timeout_s=LIMIT_S)
    return made


def within(session: HttpClient, connect: Callable[[], HttpClient], count: int) -> list[HttpClient]:
    """Additional connections of one session, which share its request ids."""
    wires = [connect() for _ in range(count)]
    for number, wire in enumerate(wires, 1):
        wire.headers, wire.last = session.headers, 1_000 * number
    return wires


def ask_for_all(wires: list[HttpClient], tool: str, other: HttpClient) -> None:
    for wire in wires:
        wire.begin("tools/call", {"name": tool})
        # The I/O thread of the earlier call answers, so that call is in its queue.
        other.ask("ping")


def test_a_session_that_asks_for_all_threads_leaves_others_one() -> None:
    release, began = threading.Event(), threading.Semaphore(0)

    def wait() -> str:
        began.release()
        assert release.wait(LIMIT_S)
        return "waited"

    made = with_threads(8, wait=sync(wait), echo=sync(lambda text: text, validate=TEXT))
    with serving(made, stateless=False) as connect:
        greedy, other = connect(), connect()
        greedy.initialize()
        other.initialize()
        wires = within(greedy, connect, 20)
        ask_for_all(wires, "wait", other)
        # The session gets six threads while two are free, and all of them if no other session needs any.
        for _ in range(6):
            assert began.acquire(timeout=LIMIT_S)
        assert other.text("echo", text="meanwhile") == "meanwhile"
        release.set()
        assert all(wire.answer()["result"]["content"][0]["text"] == "waited" for wire in wires)


def test_sessions_take_turns() -> None:
    release, began = threading.Event(), threading.Event()
    ran: list[str] = []

    def hold() -> str:
        began.set()
        assert release.wait(LIMIT_S)
        return "held"

    def noting(name: str) -> _core.Handler:
        return sync(lambda: ran.append(name) or name)

    made = with_threads(1, hold=sync(hold), a=noting("a"), b=noting("b"))
    with serving(made, stateless=False) as connect:
        first, greedy, other = connect(), connect(), connect()
        for wire in (first, greedy, other):
            wire.initialize()
        first.begin("tools/call", {"name": "hold"})
        assert began.wait(LIMIT_S)
        wires = within(greedy, connect, 6)
        beside = within(other, connect, 1)
        ask_for_all(wires, "a", other)
        ask_for_all(beside, "b", other)
        release.set()
        for wire in [first, *wires, *beside]:
            wire.answer()
    assert ran == ["a", "b", "a", "a", "a", "a", "a"]
