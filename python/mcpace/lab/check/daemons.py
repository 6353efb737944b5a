"""Servers that fork and exit, as daemons do: the process that a host started ends, and one that it left behind runs on.

Design constraint: this process adopts what such a server leaves behind (see
:func:`mcpace.lab.processes.strays.ended_strays`), and knows it by its process group, or by a variable of its
environment where it has left the group. Without /proc nothing is found.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from mcpace.lab.processes.process_samples import PROC, child_pids

VARIABLE = "MCPACE_CHECKED_START"
"""Environment variable of a started server, with a value of this start alone."""


def has_forked_and_exited(events: list[dict[str, Any]], start: str) -> bool:
    """Whether a process of the server exited with 0 and left another one running. ``events``: of the recording of this
    start, before the client disconnected. ``start``: the value of :data:`VARIABLE`.
    """
    exits = [event["process-exited"] for entry in events if "process-exited" in (event := entry["event"])]
    exited = {one["pid"] for one in exits if one.get("code") == 0}
    return bool(exited) and any(_is_left_behind(pid, exited, start) for pid in child_pids() if pid not in exited)


def _is_left_behind(pid: int, exited: set[int], start: str) -> bool:
    if sys.platform != "linux":
        return False
    try:
        # The client kills the group of a process that has exited. A member that ended by itself was not left running.
        if os.getpgid(pid) in exited:
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            return ended is None or ended.si_status == signal.SIGKILL
        return f"{VARIABLE}={start}".encode() in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return False


def explain_fork(problem: str, program: str) -> str:
    """The failure of a server that forked and exited, with what it wrote on stderr according to ``problem``."""
    _, separator, wrote = problem.partition("; its stderr ended with: ")
    return (
        f'the program "{program}" forked and exited: its process ended (exit code 0) and left another one running, '
        f"which mcpace ended; a host needs a server in the foreground{separator}{wrote}"
    )
