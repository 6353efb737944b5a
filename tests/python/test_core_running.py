"""The compiled half of the Python face: where functions run, and who has to wait for whom."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from pathlib import Path

import pytest

from core import LIMIT_S, TEXT, coroutine, eventually, listed, server, serving, sync
from mcpace import _core

VARIABLE = contextvars.ContextVar("VARIABLE", default="unset")


def test_a_quick_function_comes_to_run_inline_and_a_slow_call_sends_it_away() -> None:
    slow = threading.Event()

    def where() -> str:
        if slow.is_set():
            time.sleep(0.005)
        return str(threading.get_native_id())

    with serving(server(where=sync(where))) as connect:
        wire = connect()
        on_pool = wire.text("where")
        inline = on_pool

        def is_inline() -> bool:
            nonlocal inline
            inline = wire.text("where")
            return inline != on_pool

        eventually(is_inline)
        slow.set()
        eventually(lambda: wire.text("where") != inline)


def test_a_function_with_a_time_limit_is_never_inline() -> None:
    def where() -> str:
        # The name that the system has for the thread.
        return Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text()

    made = server(free=sync(where))
    made.add_tool(listed("limited"), sync(where), timeout_s=LIMIT_S)
    with serving(made) as connect:
        wire = connect()
        eventually(lambda: wire.text("free").startswith("mcpace-http"))
        assert not any(wire.text("limited").startswith("mcpace-http") for _ in range(100))


def test_functions_that_wait_hold_up_nobody() -> None:
    release = threading.Event()
    waiting = threading.Semaphore(0)

    def wait() -> str:
        waiting.release()
        assert release.wait(LIMIT_S)
        return "waited"

    with serving(server(wait=sync(wait), echo=sync(lambda text: text, validate=TEXT))) as connect:
        wires = [connect() for _ in range(20)]
        for wire in wires:
            wire.begin("tools/call", {"name": "wait"})
        for _ in wires:
            assert waiting.acquire(timeout=LIMIT_S)
        assert connect().text("echo", text="meanwhile") == "meanwhile"
        release.set()
        assert all(wire.answer()["result"]["content"][0]["text"] == "waited" for wire in wires)


def test_more_calls_than_threads_wait_for_their_turn() -> None:
    made = _core.Server("test", "1", threads=2)
    running = 0
    most = 0
    lock = threading.Lock()

    def work() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1
        return "done"

    made.add_tool(listed("work"), sync(work))
    with serving(made) as connect:
        wires = [connect() for _ in range(12)]
        for wire in wires:
            wire.begin("tools/call", {"name": "work"})
        assert all(wire.answer()["result"]["content"][0]["text"] == "done" for wire in wires)
    assert 1 <= most <= 2


def order_of_quick_and_slow() -> list[str]:
    release, began = threading.Event(), threading.Event()
    ran: list[str] = []

    def hold() -> str:
        began.set()
        assert release.wait(LIMIT_S)
        ran.append("hold")
        return "held"

    def quick() -> str:
        ran.append("quick")
        return "quick"

    made = _core.Server("test", "1", threads=1)
    made.add_tool(listed("hold"), sync(hold))
    # With a limit it is never inline.
    made.add_tool(listed("quick"), sync(quick), timeout_s=LIMIT_S)
    with serving(made) as connect:
        wires = [connect() for _ in range(5)]
        for wire in wires:
            wire.ask("ping")
        *holding, last, other = wires
        last.text("quick")
        for wire in holding:
            wire.begin("tools/call", {"name": "hold"})
        assert began.wait(LIMIT_S)
        last.begin("tools/call", {"name": "quick"})
        other.ask("ping")
        release.set()
        for wire in [*holding, last]:
            wire.answer()
    return ran


def test_quick_functions_do_not_wait_behind_slow_ones() -> None:
    # Where the machine has other things to do, a quick call may look slow, now and then.
    eventually(lambda: order_of_quick_and_slow() == ["quick", "hold", "quick", "hold", "hold"])


def test_coroutines_run_side_by_side_on_one_loop() -> None:
    barrier: asyncio.Barrier | None = None
    loops = set()

    async def meet() -> str:
        nonlocal barrier
        loops.add((asyncio.get_running_loop(), threading.get_native_id()))
        barrier = barrier or asyncio.Barrier(5)
        task = asyncio.current_task()
        assert task is not None
        async with asyncio.timeout(LIMIT_S):
            await barrier.wait()
        return "met"

    made = server(meet=coroutine(meet))
    with serving(made) as connect:
        wires = [connect() for _ in range(5)]
        for wire in wires:
            wire.begin("tools/call", {"name": "meet"})
        assert all(wire.answer()["result"]["content"][0]["text"] == "met" for wire in wires)
    assert {loop for loop, _ in loops} == {made.event_loop()}
    assert len(loops) == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_context_variables_come_from_whoever_serves_and_stay_within_the_call(kind: str) -> None:
    def change() -> str:
        before = VARIABLE.get()
        VARIABLE.set("leaked")
        return before

    async def change_later() -> str:
        return change()

    VARIABLE.set("outside")
    tool = sync(change) if kind == "sync" else coroutine(change_later)
    with serving(server(change=tool)) as connect:
        wire = connect()
        # Often enough to have it inline, too.
        assert {wire.text("change") for _ in range(200)} == {"outside"}
