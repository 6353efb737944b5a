"""Signals must not interrupt protected sections. Each test runs in its own process."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import os, signal
from mcpace.lab.processes import interruption
from mcpace.lab.processes.interruption import defer_interrupt, is_hurried, allow_interrupt
interruption.handle_signals()
def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
"""
HELD = """
try:
    with defer_interrupt():
        with defer_interrupt():
            ctrl_c()
            print("kept", is_hurried())
        print("kept")
    print("lost")
except KeyboardInterrupt:
    print("told", is_hurried())
"""
WAITS = """
with defer_interrupt():
    try:
        with allow_interrupt():
            ctrl_c()
            print("lost")
    except KeyboardInterrupt:
        print("told", is_hurried())
    ctrl_c()
    print("kept", is_hurried())
print("kept")
"""
BEFORE = """
with defer_interrupt():
    ctrl_c()
    try:
        with allow_interrupt():
            print("lost")
    except KeyboardInterrupt:
        print("told")
    print("kept")
"""

LOADED = """
from mcpace import _core
from mcpace.lab.load.engine import run_engine
from mcpace.lab.load.plan import Closed, HttpTarget, Operation, LoadPlan
target = _core.Target("simple")
class AtTheEnd:
    def begin(self, planned_s):
        while not (target.counters()["connections"] and target.counters()["open_connections"] == 0):
            pass  # its only call is being made
        ctrl_c()
    def second(self, second):
        pass
ping = Operation(name="ping", kind="ping")
plan = LoadPlan(target=HttpTarget(url=target.url), revision="2025-06-18", model=Closed(vus=1), duration_s=60.0,
            warm_up_s=0.0, operations=[ping], timeout_s=5.0, max_calls=1)
print(run_engine(plan, AtTheEnd()).ended)
"""

LATE_CHILD = """
import subprocess, sys, threading
from mcpace.lab.processes import strays
running, first_round, end_strays = threading.Event(), threading.Event(), strays._end_strays
def count_rounds(kept):
    end_strays(kept)
    first_round.set()
strays._end_strays = count_rounds
def start_late():
    running.set()
    first_round.wait()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).wait()
    print("ended")
try:
    with strays.thread_pool_with_children(1) as pool:
        pool.submit(start_late)
        running.wait()
        ctrl_c()
except KeyboardInterrupt:
    print("told")
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (HELD, ["kept True", "kept", "told False"]),
        # The second only hurries.
        (WAITS, ["told False", "kept True", "kept"]),
        (BEFORE, ["told", "kept"]),
        # A load that had come to its end by itself: what goes on after it would never be told.
        (LOADED, ["stopped"]),
        # A thread that starts its child after the children were killed.
        pytest.param(
            LATE_CHILD,
            ["ended", "told"],
            marks=pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process"),
        ),
    ],
)
def test_a_signal_is_raised_where_nothing_is_lost_by_it(program: str, said: list[str]) -> None:
    command = [sys.executable, "-c", BEGIN + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == said
