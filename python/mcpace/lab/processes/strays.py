"""Descendants that have left the process group of a child (``setsid``).

While its ancestors run, :class:`Outsiders` finds such a process as their descendant. A stray is a process in another
group whose parent has ended. Strays become children of this process and are ended too.

Only Linux can do this. On macOS such a process outlives mcpace. On Windows no process leaves the job of its ancestor.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from mcpace.lab.processes.interruption import is_hurried
from mcpace.lab.processes.process_usage import process_tree
from mcpace.system.process_groups import Child

GRACE_S = 4.0
"""Seconds from SIGTERM to SIGKILL."""
GENERATIONS = 16
"""Most rounds of ending strays: a stray that ends may leave strays of its own."""
POLL_MS = 50
PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37


@contextmanager
def ended_strays() -> Iterator[None]:
    """Kills, after the ``with`` block, every child of this process that it did not have before. Call it where no child
    of the block is needed any more. In the block this process adopts orphaned descendants (``PR_SET_CHILD_SUBREAPER``
    of prctl(2)).
    """
    before, adopted_before = _child_ids(), _adopts_orphans()
    is_adopting = _set_adoption(True)
    try:
        yield
    finally:
        if is_adopting:
            try:
                _end_strays(before)
            finally:
                _set_adoption(adopted_before)


@contextmanager
def thread_pool_with_children(at_once: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of ``at_once`` threads whose work starts child processes. No such child outlives the ``with`` block.

    After an exception, such as Ctrl-C, children are killed until every thread has ended: a thread that waits for its
    child goes on when the child ends, and a thread may start its child only after the exception.
    """
    before = _child_ids()
    with ended_strays(), ThreadPoolExecutor(max(1, at_once)) as pool:
        try:
            yield pool
        except BaseException:
            closing = threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True}, daemon=True)
            closing.start()
            while closing.is_alive():
                _end_strays(before)
                closing.join(POLL_MS / 1000)
            raise


def _adopts_orphans() -> bool:
    if sys.platform != "linux":
        return False
    answer = ctypes.c_int()
    return ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0) == 0 and answer.value != 0


def _set_adoption(adopts: bool) -> bool:
    """Has this process adopt orphaned descendants, or not. Returns whether that worked."""
    return sys.platform == "linux" and bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(adopts), 0, 0, 0) == 0)


def _child_ids() -> set[int]:
    """Children of this process; empty where the system doesn't list them."""
    if sys.platform != "linux":
        return set()
    found: set[int] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found |= {int(pid) for pid in file.read_text().split()}
    return found


def _end_strays(kept: set[int]) -> None:
    """Kills the children of this process, but for ``kept`` and the members of the groups that these lead."""
    if sys.platform != "linux":
        return
    for _ in range(GENERATIONS):
        strays = [pid for pid in _child_ids() if kept.isdisjoint((pid, _group_of(pid)))]
        if not strays:
            return
        for pid in strays:
            # A process of another user can't be ended.
            with contextlib.suppress(ProcessLookupError, ChildProcessError, PermissionError):
                group = os.getpgid(pid)
                if group == os.getpgrp():
                    os.kill(pid, signal.SIGKILL)
                else:
                    os.killpg(group, signal.SIGKILL)
                os.waitpid(pid, 0)


def _group_of(pid: int) -> int:
    """The process group of a process; 0 where the process has ended."""
    if sys.platform != "linux":
        return 0
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


class Outsiders:
    """Descendants of a child that have left its process group. On systems other than Linux none is found."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._handles: dict[int, int] = {}
        """Descriptor of each process (pidfd_open(2)), by process id. It never means a later process of this id."""

    def find(self) -> None:
        """Notes those that run now. Without effect after the child's exit, which cuts them off from it."""
        if sys.platform != "linux" or self._child.returncode is not None:
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
    descriptors. Without effect on systems other than Linux.
    """
    if sys.platform != "linux":
        return
    try:
        _signal_all(handles, signal.SIGTERM)
        _wait_all(handles, grace_s)
    finally:
        _signal_all(handles, signal.SIGKILL)
        for handle in handles:
            os.close(handle)


def _signal_all(handles: list[int], number: signal.Signals) -> None:
    if sys.platform != "linux":
        return
    for handle in handles:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(handle, number)


def _wait_all(handles: list[int], limit_s: float) -> None:
    """Waits until all processes have ended. Doesn't wait when hurried."""
    if sys.platform != "linux":
        return
    deadline = time.monotonic() + limit_s
    poll, running = select.poll(), set(handles)
    for handle in handles:
        poll.register(handle, select.POLLIN)
    while running and time.monotonic() < deadline and not is_hurried():
        for handle, _ in poll.poll(POLL_MS):
            poll.unregister(handle)
            running.discard(handle)
