"""Lines that the programs of a start write to stderr, each with the time at which it came.

Design constraint: interpreters and package runners report their times to stderr, which the clients don't keep. So a
shell sends stderr to a named pipe in a private folder. Output is read all the time, so that no program waits for it.
"""

from __future__ import annotations

import os
import selectors
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from mcpace.lab.processes.starters import redirect_stderr

MOST_BYTES = 32 * 2**20
"""Most bytes that are kept. Later output is read and dropped."""
CHUNK = 65_536
PERIOD_S = 0.1

Line = tuple[int, bytes]
"""Clock in nanoseconds and text of one line."""


class StampedOutput:
    """Output on stderr of one command, for the time of the ``with`` block. Windows does not have it."""

    def __enter__(self) -> StampedOutput:
        self._folder = tempfile.TemporaryDirectory(prefix="mcpace-check-")
        self._path = Path(self._folder.name) / "stderr"
        self._pipe = _make_pipe(self._path)
        self._lock = threading.Lock()
        self._lines: list[Line] = []
        self._rest = bytearray()
        self._left = MOST_BYTES
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mcpace-stderr", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()
        os.close(self._pipe)
        self._folder.cleanup()

    def command(self, words: Sequence[str]) -> tuple[str, ...]:
        """The command that sends its stderr here."""
        return redirect_stderr(words, self._path)

    def lines(self) -> list[Line]:
        """All whole lines so far, with those that still wait in the pipe."""
        with self._lock:
            self._read()
            return list(self._lines)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ)
            while not self._over.is_set():
                if selector.select(PERIOD_S):
                    with self._lock:
                        self._read()

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._pipe, CHUNK)
            except BlockingIOError:
                return
            now = time.monotonic_ns()
            self._left -= len(chunk)
            if self._left >= 0:
                *whole, rest = (bytes(self._rest) + chunk).split(b"\n")
                self._lines += [(now, line) for line in whole]
                self._rest = bytearray(rest)


def _make_pipe(path: Path) -> int:
    if sys.platform == "win32":
        raise OSError("Windows has no named pipe that a shell can write to")
    os.mkfifo(path, 0o600)
    # Opened for both directions, the pipe has no end before the command has opened it.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)
