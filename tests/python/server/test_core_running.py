"""The compiled part of the Python server: the threads on which functions run, and the waits between calls."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from pathlib import Path

import pytest

from mcpace import _core
from support.core_server import LIMIT_S, TEXT, coroutine, eventually, listed, server, serving, sync
from support.finding_scenes import patient

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


def test_a_quick_function_may_be_long_now_and_then() -> None:
    def stays_inline() -> bool:
        long = threading.Event()

        def where() -> str:
            if long.is_set():
                time.sleep(0.0015)
            return str(threading.get_native_id())

        with serving(server(where=sync(where))) as connect:
            wire = connect()
            on_pool = wire.text("where")
            eventually(lambda: wire.text("where") != on_pool)
            for _ in range(4):
                long.set()
                wire.text("where")
                long.clear()
                if any(wire.text("where") == on_pool for _ in range(30)):
                    return False
        return True

    # On a busy machine, a call may take longer than its own work.
    eventually(stays_inline)


def test_a_function_with_a_time_limit_is_never_inline() -> None:
    def where() -> str:
        # The system's name of the thread.
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


def order_on_one_thread(*tools: str) -> list[str]:
    """Order in which calls run after waiting for the only thread, which a call of `hold` had occupied."""
    release, began = threading.Event(), threading.Event()
    ran: list[str] = []

    def hold() -> str:
        began.set()
        assert release.wait(LIMIT_S)
        return "held"

    def slow() -> str:
        time.sleep(0.001)
        ran.append("slow")
        return "slow"

    def noting(name: str) -> _core.Handler:
        return sync(lambda: ran.append(name) or name)

    made = _core.Server("test", "1", threads=1)
    # Functions with a limit never run inline.
    for name, handler in {
        "hold": sync(hold),
        "slow": sync(slow),
        "quick": noting("quick"),
        "new": noting("new"),
    }.items():
        made.add_tool(listed(name), handler, timeout_s=LIMIT_S)
    with serving(made) as connect:
        wires = [connect() for _ in range(len(tools) + 2)]
        first, other, *waiting = wires
        first.text("slow")
        first.text("quick")
        ran.clear()
        first.begin("tools/call", {"name": "hold"})
        assert began.wait(LIMIT_S)
        for wire, tool in zip(waiting, tools, strict=True):
            wire.begin("tools/call", {"name": tool})
            # The I/O thread of the earlier call answers, so that call is in its queue.
            other.ask("ping")
        release.set()
        for wire in [first, *waiting]:
            wire.answer()
    return ran


def test_quick_functions_and_unknown_ones_do_not_wait_behind_slow_ones() -> None:
    # On a busy machine, a short call may sometimes appear to be slow.
    expected = ["quick", "new", "slow", "slow"]
    eventually(lambda: order_on_one_thread("slow", "slow", "quick", "new") == expected)


def test_slow_functions_are_overtaken_by_a_limited_number_of_quick_ones() -> None:
    def overtaken() -> bool:
        ran = order_on_one_thread("slow", *["quick"] * 40)
        return 8 <= ran.index("slow") <= 17

    eventually(overtaken)


def spin() -> None:
    until = time.thread_time_ns() + 500_000
    while time.thread_time_ns() < until:
        pass


@patient
def test_functions_that_only_work_take_turns() -> None:
    threads: set[int] = set()

    def work() -> str:
        threads.add(threading.get_native_id())
        spin()
        return "done"

    with serving(server(work=sync(work))) as connect:
        wires = [connect() for _ in range(20)]

        def few_threads_do_it() -> bool:
            threads.clear()
            for _ in range(5):
                for wire in wires:
                    wire.begin("tools/call", {"name": "work"})
                for wire in wires:
                    wire.answer()
            return len(threads) <= 4

        eventually(few_threads_do_it)


def test_a_function_that_always_worked_and_now_waits_holds_up_nobody() -> None:
    blocks, release = threading.Event(), threading.Event()

    def work() -> str:
        spin()
        if blocks.is_set():
            blocks.clear()
            assert release.wait(LIMIT_S)
        return "done"

    with serving(server(work=sync(work))) as connect:
        first, second = connect(), connect()
        for _ in range(50):
            first.text("work")
        blocks.set()
        first.begin("tools/call", {"name": "work"})
        eventually(lambda: not blocks.is_set())
        # A further call of the function waits at most until the end of a turn.
        assert second.text("work") == "done"
        release.set()
        assert first.answer()["result"]["content"][0]["text"] == "done"


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
        # Enough calls for the function to run inline, too.
        assert {wire.text("change") for _ in range(200)} == {"outside"}
