"""Journal of a run in progress: a file of JSON lines beside the file that the run will be saved in.

Other programs read the journal to follow the run. The first line identifies the journal. Each further line is one
event: ``{"step": …}``, ``{"sample": …}``, ``{"second": …}``. The journal is removed once the run is saved. A run that
was killed leaves its journal behind; the process id in the first line shows that the run has ended.

Design constraints: Standard library only, since a load imports nothing else before its first request. The journal never
fails and never waits: when it can't be written, the run continues without it. An existing file that is not a journal (a
link, a pipe, a user's file) or that another running process holds is left untouched.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from mcpace import __version__
from mcpace.system.files import open_file, remove_open_file, try_lock

if TYPE_CHECKING:
    from mcpace.lab.load.run_load import Watcher
    from mcpace.lab.progress import Progress
    from mcpace.report.model.load import LoadSecond

FORMAT: Literal["mcpace.live/1"] = "mcpace.live/1"
SUFFIX = ".live"
HEAD = json.dumps({"live": FORMAT})[:-1].encode()
"""First bytes of every journal."""


def journal_path(out: Path) -> Path:
    """Path of the journal of a run that will be saved in ``out``."""
    return out.with_name(f"{out.name}{SUFFIX}")


def remove_journal(out: Path) -> None:
    """Removes the journal of a run that has been saved in ``out``."""
    path = journal_path(out)
    descriptor = _lock_journal(path, os.O_RDWR)
    if descriptor is None:
        return
    if not os.fstat(descriptor).st_size:  # an empty file may belong to anybody
        os.close(descriptor)
        return
    with suppress(OSError):
        remove_open_file(descriptor, path)


@contextmanager
def record_progress(progress: Progress, out: Path | None, kind: str, what: str) -> Iterator[Progress]:
    """Yields a progress that forwards to ``progress``, and writes a journal where the run has a file ``out``."""
    with _open_lines(out, kind, what) as file:
        yield progress if file is None else _JournalProgress(progress, file)


@contextmanager
def record_load(progress: Watcher, out: Path | None, what: str) -> Iterator[Watcher]:
    """Yields a watcher that forwards to ``progress``, and writes a journal where the load has a file ``out``."""
    with _open_lines(out, "load", what) as file:
        yield progress if file is None else _JournalWatcher(progress, file)


@contextmanager
def _open_lines(out: Path | None, kind: str, what: str) -> Iterator[_Lines | None]:
    """Yields the open journal. Removes it where the experiment fails, since the run will not be saved."""
    lines = None if out is None else _create_journal(out, kind, what)
    if lines is None or out is None:
        yield None
        return
    try:
        yield lines
    except BaseException:
        lines.close()
        remove_journal(out)
        raise
    lines.close()


def _create_journal(out: Path, kind: str, what: str) -> _Lines | None:
    if out.exists() and not out.is_file():
        return None  # a pipe or a device
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _lock_journal(journal_path(out), os.O_RDWR | os.O_CREAT)
        if descriptor is None:
            return None
        os.ftruncate(descriptor, 0)
        lines = _Lines(os.fdopen(descriptor, "w", encoding="utf-8", buffering=1))
    except OSError:
        return None
    started = datetime.now(UTC).isoformat(timespec="seconds")
    lines.write_line("live", FORMAT, kind=kind, what=what, started=started, mcpace=__version__, pid=os.getpid())
    return lines


def _lock_journal(path: Path, flags: int) -> int | None:
    """Opens and locks the journal; closing the descriptor unlocks it.

    Returns ``None`` where the file is not a journal, or another process holds the lock.
    """
    try:
        descriptor = open_file(path, flags, 0o666)
    except OSError:
        return None
    try:
        if try_lock(descriptor) and stat.S_ISREG(os.fstat(descriptor).st_mode):
            begin = os.read(descriptor, len(HEAD))
            os.lseek(descriptor, 0, os.SEEK_SET)
            if begin in (b"", HEAD):
                return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


class _Lines:
    """Open journal, written line by line."""

    def __init__(self, file: IO[str]) -> None:
        self._file: IO[str] | None = file

    def write_line(self, name: str, value: Any, **more: Any) -> None:
        """Writes one line. After a failed write the journal is closed, and later lines are dropped."""
        try:
            if self._file is not None:
                self._file.write(json.dumps({name: value, **more}) + "\n")
        except (OSError, ValueError):
            self.close()

    def close(self) -> None:
        """Closes the file. Closing twice is harmless."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError:
            return


class _JournalProgress:
    """A :class:`mcpace.lab.progress.Progress` that writes the journal and forwards each event."""

    def __init__(self, progress: Progress, lines: _Lines) -> None:
        self._progress, self._lines = progress, lines

    def preparing(self, what: str) -> None:
        self._lines.write_line("preparing", what)
        self._progress.preparing(what)

    def begin(self, steps: int) -> None:
        self._lines.write_line("begin", steps)
        self._progress.begin(steps)

    def step(self, what: str) -> None:
        self._lines.write_line("step", what)
        self._progress.step(what)

    def note(self, text: str) -> None:
        self._lines.write_line("note", text)
        self._progress.note(text)

    def sample(self, group: str, row: str, value: float, unit: Literal["s", "per second"] = "s") -> None:
        self._lines.write_line("sample", value, group=group, row=row, unit=unit)
        self._progress.sample(group, row, value, unit)


class _JournalWatcher:
    """A :class:`mcpace.lab.load.run_load.Watcher` that writes the journal and forwards each event."""

    def __init__(self, progress: Watcher, lines: _Lines) -> None:
        self._progress, self._lines = progress, lines

    def preparing(self, what: str) -> None:
        self._lines.write_line("preparing", what)
        self._progress.preparing(what)

    def note(self, text: str) -> None:
        self._lines.write_line("note", text)
        self._progress.note(text)

    def begin(self, planned_s: float) -> None:
        self._lines.write_line("planned_s", planned_s)
        self._progress.begin(planned_s)

    def second(self, second: LoadSecond) -> None:
        self._lines.write_line("second", second.model_dump(mode="json"))
        self._progress.second(second)
