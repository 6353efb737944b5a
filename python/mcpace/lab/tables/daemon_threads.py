"""Work on threads that the end of the program does not wait for.

pyarrow waits for its open requests when the program ends, and Python waits for the threads of a pool. A store that
sends a byte now and then never ends a request.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

INTERRUPTED = 130
Result = TypeVar("Result")


def run_on_daemon(work: Callable[[], Result]) -> Future[Result]:
    """Runs ``work`` on a daemon thread."""
    done = Future[Result]()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, daemon=True, name="mcpace-tables").start()
    return done


def end_without_waiting(code: int) -> None:
    """Has the program end with this code as soon as Python's own part of its end begins."""
    atexit.register(os._exit, code)
