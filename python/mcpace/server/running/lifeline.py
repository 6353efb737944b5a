"""Ends a worker when its parent is gone, however the parent ended.

The parent alone holds the writing end of a pipe, which closes when the parent ends, even by ``kill -9``. On Linux the
kernel then sends a signal that ends the worker (``F_SETSIG``), so that even a call that holds the interpreter's lock
for ever leaves no orphan. On other systems a thread waits for the end of the pipe. Calls in flight are cut, as if a
single process had been killed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

if sys.platform != "win32":
    import fcntl


def tie(reading_end: int) -> None:
    """Ends this process as soon as the other end of the pipe is closed. Nothing is ever written to the pipe."""
    if sys.platform == "linux":
        fcntl.fcntl(reading_end, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(reading_end, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(reading_end, fcntl.F_SETFL, fcntl.fcntl(reading_end, fcntl.F_GETFL) | os.O_ASYNC)
    # The parent may have ended before the kernel was set up.
    threading.Thread(target=_wait, args=(reading_end,), name="mcpace-lifeline", daemon=True).start()


def _wait(reading_end: int) -> None:
    try:
        os.read(reading_end, 1)
    finally:
        os._exit(1)
