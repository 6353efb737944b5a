"""Child processes that can't outlive this process: each leads a process group, which is ended in bounded time.

A descendant may leave its group (``setsid``). While its ancestors run, :class:`Outsiders` finds it as their descendant.
A stray is a process in another group whose parent has ended. Strays become children of this process and are ended too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcpace.lab.paths import neutral_folder
from mcpace.lab.processes.interruption import is_hurried
from mcpace.lab.processes.process_usage import process_tree

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


@contextmanager
def ended_strays() -> Iterator[None]:
    """Kills, after the ``with`` block, every child of this process that it did not have before. Call it where no child
    of the block is needed any more.
    """
    before = _child_ids()
    is_adopting = adopt_orphans()
    try:
        yield
    finally:
        if is_adopting:
            _end_strays(before)


def _end_strays(kept: set[int]) -> None:
    """Kills the children of this process, but for ``kept`` and the members of the groups that these lead."""
    for _ in range(GENERATIONS):
        strays = [pid for pid in _child_ids() if kept.isdisjoint((pid, _group_of(pid)))]
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


def _child_ids() -> set[int]:
    return {int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


def _group_of(pid: int) -> int:
    """The process group of a process; 0 where the process has ended."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


class Outsiders:
    """Descendants of a child that have left its process group."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._handles: dict[int, int] = {}
        """Descriptor of each process (pidfd_open(2)), by process id. It never means a later process of this id."""

    def find(self) -> None:
        """Notes those that run now. Without effect after the child's exit, which cuts them off from it."""
        if self._child.returncode is not None:
            return
        new: dict[int, int] = {}
        for pid in process_tree(self._child.pid):
            if pid not in self._handles and _group_of(pid) not in (0, self._child.pid):
                with contextlib.suppress(OSError):
                    new[pid] = os.pidfd_open(pid)
        # A process that had ended before its descriptor was opened may have left its id to a stranger.
        running = process_tree(self._child.pid)
        for pid, handle in new.items():
            if pid in running:
                self._handles[pid] = handle
            else:
                os.close(handle)

    def end(self, grace_s: float = GRACE_S) -> None:
        """Ends those that were found: SIGTERM, and SIGKILL after ``grace_s``. Harmless where there are none."""
        handles = list(self._handles.values())
        self._handles.clear()
        end_processes(handles, grace_s)


def end_processes(handles: list[int], grace_s: float = GRACE_S) -> None:
    """Ends the processes of some descriptors (pidfd_open(2)): SIGTERM, and SIGKILL after ``grace_s``. Closes the
    descriptors.
    """
    try:
        _signal_all(handles, signal.SIGTERM)
        _wait_all(handles, grace_s)
    finally:
        _signal_all(handles, signal.SIGKILL)
        for handle in handles:
            os.close(handle)


def _signal_all(handles: list[int], number: signal.Signals) -> None:
    for handle in handles:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(handle, number)


def _wait_all(handles: list[int], limit_s: float) -> None:
    """Waits until all processes have ended. Doesn't wait when hurried."""
    deadline = time.monotonic() + limit_s
    poll, running = select.poll(), set(handles)
    for handle in handles:
        poll.register(handle, select.POLLIN)
    while running and time.monotonic() < deadline and not is_hurried():
        for handle, _ in poll.poll(LONGEST_PAUSE_S * 1000):
            poll.unregister(handle)
            running.discard(handle)


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
