"""Signals as something to wait for: they arrive on a socket beside whatever else is waited for, never in the middle
of work.

Deliberately absent: blocking signals. A mask would be inherited by the processes that an author's tools start.
"""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Arrivals:
    """The signals that have come and nobody has taken yet."""

    def __init__(self, reading_end: socket.socket) -> None:
        self._reading_end = reading_end

    def fileno(self) -> int:
        """Readable when there is one."""
        return self._reading_end.fileno()

    def take(self) -> list[signal.Signals]:
        """Those that came; none if none did. Never waits."""
        try:
            return [signal.Signals(number) for number in self._reading_end.recv(4096)]
        except BlockingIOError:
            return []


@contextmanager
def arriving(numbers: Iterable[signal.Signals]) -> Iterator[Arrivals]:
    """Takes these signals over for as long as the block lasts; only on the main thread.

    One that is ignored, as SIGINT is under ``nohup`` and in a shell's background, stays ignored.
    """
    reading_end, writing_end = socket.socketpair()
    reading_end.setblocking(False)
    writing_end.setblocking(False)
    with reading_end, writing_end:
        before = signal.set_wakeup_fd(writing_end.fileno(), warn_on_full_buffer=False)
        taken = {}
        try:
            for number in numbers:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    taken[number] = signal.signal(number, _nothing_more)
            yield Arrivals(reading_end)
        finally:
            for number, handler in taken.items():
                with contextlib.suppress(TypeError):  # one that was not set from Python can't be set back
                    signal.signal(number, handler)
            signal.set_wakeup_fd(before)


def _nothing_more(number: int, frame: FrameType | None) -> None:
    """The wake-up says it all. A handler, so that a child process begins with the default again."""
