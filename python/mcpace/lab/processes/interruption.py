"""Ctrl-C and SIGTERM, so that they end the work and lose nothing of it.

The first signal raises ``KeyboardInterrupt`` where the work is. Later ones only shorten what is being waited for while
things are put away: child processes get no more time to leave by themselves. A stretch that must not be torn, such as
turning what was measured into cases and saving them, is :func:`held`: there the first signal hurries too, and is raised
at its end. What waits within such a stretch, and loses nothing by being broken off, is :func:`interruptible`.

Deliberately absent: a way to break off the putting away itself. All of it is bounded in time.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_came = 0
_held = 0
_owed = False


def listen() -> None:
    """Takes the signals over, for the rest of the process. One that is ignored, as under ``nohup``, stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _arrived)


def hurried() -> bool:
    """Whether nothing should be waited for any more."""
    return _came > 1 or _owed


@contextmanager
def held() -> Iterator[None]:
    """A stretch that a signal doesn't tear: it is raised at the end."""
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
def interruptible() -> Iterator[None]:
    """A part of a held stretch in which a signal is raised at once; one that came before, at its beginning."""
    global _held, _owed
    before, _held = _held, 0
    try:
        if _owed:
            _owed = False
            raise KeyboardInterrupt
        yield
    finally:
        _held = before


def _arrived(number: int, frame: FrameType | None) -> None:
    global _came, _owed
    _came += 1
    if _came > 1:
        return
    if _held:
        _owed = True
    else:
        raise KeyboardInterrupt
