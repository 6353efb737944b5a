"""Keeps the cores awake.

A call over one connection wakes a thread or two. Where cores sleep in between, a virtual machine takes 20 to 50 µs to
wake one, and what runs on it finds nothing in its caches: more than the layers that are measured. Something to do at
idle priority (SCHED_IDLE), which gives way at once to whatever else wants to run, keeps them awake.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

# Ends when its parent process ends, for whatever reason.
SPIN = """
import os
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
parent = os.getppid()
while os.getppid() == parent:
    pass
"""


@contextmanager
def kept_awake() -> Iterator[None]:
    """Keeps all cores awake for the duration of the block. Linux only."""
    with ExitStack() as spinning:
        for _ in os.sched_getaffinity(0):
            one = spinning.enter_context(subprocess.Popen([sys.executable, "-c", SPIN]))
            spinning.callback(one.kill)
        yield
