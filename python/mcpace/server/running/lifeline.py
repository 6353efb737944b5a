"""A worker's tie to its parent: when the parent is gone, however it went, the worker ends.

The tie is a pipe whose writing end the parent alone holds; its end comes with the parent's, even by ``kill -9``. On
Linux the kernel itself is told to end us then (``F_SETSIG``), so that not even a call which holds the interpreter's
lock for ever leaves an orphan; elsewhere a thread waits for it. What is in flight is cut, as it would be with the
only process killed.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading


def tie(reading_end: int) -> None:
    """From now on this process ends with the other end of this pipe. Nothing ever comes out of it."""
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(reading_end, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(reading_end, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(reading_end, fcntl.F_SETFL, fcntl.fcntl(reading_end, fcntl.F_GETFL) | os.O_ASYNC)
    # Also closes the gap: the parent may have gone before the kernel was told.
    threading.Thread(target=_wait, args=(reading_end,), name="mcpace-lifeline", daemon=True).start()


def _wait(reading_end: int) -> None:
    try:
        os.read(reading_end, 1)
    finally:
        os._exit(1)
