"""Signals that must not tear what was measured, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import os, signal
from mcpace.lab import interruption
from mcpace.lab.interruption import held, hurried, interruptible
interruption.listen()
def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
"""
HELD = """
try:
    with held():
        with held():
            ctrl_c()
            print("kept", hurried())
        print("kept")
    print("lost")
except KeyboardInterrupt:
    print("told", hurried())
"""
WAITS = """
with held():
    try:
        with interruptible():
            ctrl_c()
            print("lost")
    except KeyboardInterrupt:
        print("told", hurried())
    ctrl_c()
    print("kept", hurried())
print("kept")
"""
BEFORE = """
with held():
    ctrl_c()
    try:
        with interruptible():
            print("lost")
    except KeyboardInterrupt:
        print("told")
    print("kept")
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (HELD, ["kept True", "kept", "told False"]),
        # The second only hurries.
        (WAITS, ["told False", "kept True", "kept"]),
        (BEFORE, ["told", "kept"]),
    ],
)
def test_a_signal_is_raised_where_nothing_is_lost_by_it(program: str, said: list[str]) -> None:
    command = [sys.executable, "-c", BEGIN + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == said
