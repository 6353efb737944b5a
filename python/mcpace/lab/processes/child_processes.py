"""Child processes that can't outlive this process: each leads a process group, which is ended in bounded time.

A stray is a process that a child started in another group and that outlived the child. Strays become children of this
process and are ended too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mcpace.lab.paths import neutral_folder
from mcpace.lab.processes.interruption import is_hurried

GRACE_S = 4.0
"""Seconds from SIGTERM to SIGKILL: time for a client program to end the stdio server that it started."""
LONGEST_PAUSE_S = 0.05
GENERATIONS = 16
"""Most rounds of ending strays: a stray that ends may leave strays of its own."""
PR_SET_CHILD_SUBREAPER = 36
EXITS = (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)
"""Codes of waitid(2) for a child that has ended. Its tracer is also told of stops (ptrace(2))."""

Child = subprocess.Popen[str] | subprocess.Popen[bytes]


@dataclass(frozen=True)
class Done:
    code: int
    stdout: str
    stderr: str
    timed_out: bool = False


def run_child(
    command: list[str], limit_s: float, *, cwd: Path | None = None, env: dict[str, str] | None = None
) -> Done:
    """Runs a command to its end. Ends its whole process group on time-out, Ctrl-C and any other exception.

    A command that can't be started is reported as exit code 127, with the reason as its stderr. `cwd` is the neutral
    folder unless given; `env` is added to this process's environment.
    """
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=cwd or neutral_folder(),
            env={**os.environ, **env} if env else None,
            start_new_session=True,
        )
    except OSError as error:
        return Done(127, "", f"{command[0]}: {error.strerror}")
    with child:
        try:
            stdout, stderr = child.communicate(timeout=limit_s)
            return Done(child.returncode, stdout, stderr)
        except subprocess.TimeoutExpired:
            end_group(child)
            return Done(-signal.SIGKILL, "", "", timed_out=True)
        except BaseException:
            end_group(child)
            raise


def end_group(child: Child, grace_s: float = GRACE_S) -> None:
    """Ends a child that leads a process group, and the rest of the group. Harmless after the child was reaped.

    The leader is reaped last: until then, its id, which is also the group's, can't be reused.
    """
    if child.returncode is not None:
        return
    try:
        signal_group(child, signal.SIGTERM)
        wait_exit(child, grace_s)
    finally:
        # SIGKILL is sent even after the leader's exit: its children may have ignored SIGTERM.
        signal_group(child, signal.SIGKILL)
        child.wait()


def adopt_orphans() -> bool:
    """Makes this process adopt orphaned descendants (``PR_SET_CHILD_SUBREAPER``). Returns whether that worked."""
    return sys.platform == "linux" and bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def end_strays() -> None:
    """Kills every child of this process. Call it only when no child is needed any more."""
    for _ in range(GENERATIONS):
        strays = [int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]
        if not strays:
            return
        for pid in strays:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                group = os.getpgid(pid)
                if group == os.getpgrp():
                    os.kill(pid, signal.SIGKILL)
                else:
                    os.killpg(group, signal.SIGKILL)
                os.waitpid(pid, 0)


def wait_exit(child: Child, limit_s: float) -> bool:
    """Waits for a child's exit without reaping it. Returns whether the child exited. Doesn't wait when hurried."""
    deadline = time.monotonic() + limit_s
    pause_s = 0.001
    while not has_exited(child):
        if time.monotonic() > deadline or is_hurried():
            return False
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    return True


def has_exited(child: Child) -> bool:
    """Whether the child has exited. The stop of a child whose stacks are sampled is no exit."""
    if child.returncode is not None:
        return True
    state = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return state is not None and state.si_code in EXITS


def signal_group(child: Child, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
