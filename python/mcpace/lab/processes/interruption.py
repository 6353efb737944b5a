"""Handling of Ctrl-C, SIGTERM and SIGHUP (Ctrl-Break on Windows) that ends the work without losing results.

The first signal raises ``KeyboardInterrupt``. Later signals only shorten the waits of the clean-up: child processes get
no more time to exit by themselves. :func:`defer_interrupt` protects a section that must complete, such as turning
measurements into cases and saving them: the first signal shortens waits in it, and is raised at its end.
:func:`allow_interrupt` marks a part of such a section that waits and that may be interrupted without loss.

Deliberately absent: a way to interrupt the clean-up itself. All of it is bounded in time.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mcpace.system.process_groups import ENDING

_came = 0
_held = 0
_owed = False


def handle_signals() -> None:
    """Installs the handlers for the rest of the process. Ignored signals, as under ``nohup``, stay ignored."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _on_signal)


def is_hurried() -> bool:
    """Whether waits should end at once."""
    return _came > 1 or _owed


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Defers ``KeyboardInterrupt`` to the end of the ``with`` block."""
    global _held, _owed
    _held += 1
    try:
        yield
    finally:
        _held -= 1
    if _owed and not _held:
        _owed = False
        raise KeyboardInterrupt


@contextmanager
def allow_interrupt() -> Iterator[None]:
    """Allows ``KeyboardInterrupt`` inside :func:`defer_interrupt`. A deferred interrupt is raised at the beginning."""
    global _held, _owed
    before, _held = _held, 0
    try:
        if _owed:
            _owed = False
            raise KeyboardInterrupt
        yield
    finally:
        _held = before


def _on_signal(number: int, frame: FrameType | None) -> None:
    global _came, _owed
    _came += 1
    if _came > 1:
        return
    if _held:
        _owed = True
    else:
        raise KeyboardInterrupt
