"""Detection of changed files, for development: a thread watches folders and wakes the parent's loop.

It uses ``watchfiles``, an optional extra: ``pip install 'mcpace[reload]'``.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcpace.server.running.errors import SetupProblem
from mcpace.server.running.settings import Settings


class ChangedFiles:
    """The changed files that were not taken yet."""

    def __init__(self, reading_end: socket.socket) -> None:
        self._reading_end = reading_end
        self._lock = threading.Lock()
        self._paths: list[str] = []

    def fileno(self) -> int:
        """A descriptor that is readable when files have changed."""
        return self._reading_end.fileno()

    def take(self) -> list[str]:
        """Returns and clears the changed files, sorted. Never blocks."""
        with self._lock:
            try:
                self._reading_end.recv(4096)
            except BlockingIOError:
                return []
            paths, self._paths = self._paths, []
            return paths

    def add(self, paths: list[str], writing_end: socket.socket) -> None:
        """Adds changed files. Called by the watching thread."""
        with self._lock:
            self._paths += paths
            writing_end.send(b"x")


@contextmanager
def watch_files(settings: Settings) -> Iterator[ChangedFiles]:
    """Watches the folders of the settings, or the current folder, within the block.

    Raises :class:`SetupProblem` if watchfiles is not installed or a folder does not exist.
    """
    try:
        from watchfiles import PythonFilter, watch
    except ModuleNotFoundError as error:
        raise SetupProblem("--reload needs watchfiles, which is not installed: pip install 'mcpace[reload]'") from error
    folders = [Path(folder) for folder in settings.reload_dirs] or [Path.cwd()]
    for folder in folders:
        if not folder.is_dir():
            raise SetupProblem(f"there is no folder {folder} to watch")
    here = Path.cwd()
    stop = threading.Event()
    reading_end, writing_end = socket.socketpair()
    reading_end.setblocking(False)
    writing_end.setblocking(False)
    changes = ChangedFiles(reading_end)

    def run() -> None:
        for found in watch(*folders, watch_filter=PythonFilter(), stop_event=stop, raise_interrupt=False):
            paths = sorted({Path(path) for _, path in found})
            changes.add(
                [str(path.relative_to(here) if path.is_relative_to(here) else path) for path in paths], writing_end
            )

    thread = threading.Thread(target=run, name="mcpace-reload", daemon=True)
    thread.start()
    try:
        yield changes
    finally:
        stop.set()
        thread.join()
        reading_end.close()
        writing_end.close()
