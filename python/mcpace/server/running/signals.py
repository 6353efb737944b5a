"""Signals as readable sockets: a loop waits for them together with other events, and they never interrupt work.

Deliberately absent: blocking signals. Processes that an author's tools start would inherit the mask.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)
if sys.platform == "win32":
    CHILD_ENDED: tuple[signal.Signals, ...] = ()
else:
    CHILD_ENDED = (signal.SIGCHLD,)
    """The signal that tells of the end of a child process."""


class Arrivals:
    """The signals that arrived and were not taken yet."""

    def __init__(self, reading_end: socket.socket) -> None:
        self._reading_end = reading_end

    def fileno(self) -> int:
        """A descriptor that is readable when a signal has arrived."""
        return self._reading_end.fileno()

    def take(self) -> list[signal.Signals]:
        """Returns and clears the signals that arrived. Never blocks."""
        try:
            return [signal.Signals(number) for number in self._reading_end.recv(4096)]
        except BlockingIOError:
            return []


@contextmanager
def catch_signals(numbers: Iterable[signal.Signals]) -> Iterator[Arrivals]:
    """Takes these signals over within the block. Only on the main thread. An ignored signal, such as SIGINT under
    ``nohup`` and in a shell's background, stays ignored.
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
                with contextlib.suppress(TypeError):  # a handler that was not set from Python can't be restored
                    signal.signal(number, handler)
            signal.set_wakeup_fd(before)


def _nothing_more(number: int, frame: FrameType | None) -> None:
    """Does nothing: the wake-up descriptor reports the signal. It is a handler, so that child processes start with the
    default action."""
