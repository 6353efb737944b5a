"""What a run in progress leaves beside the file that it will be saved in, for whoever wants to look on: lines of JSON.

The first line says what it is, each of the others what happened: ``{"step": …}``, ``{"sample": …}``, ``{"second": …}``.
It is gone once the run is saved. A run that was killed leaves its journal; the process id in it tells.

Design constraint: standard library only, since a load loads no more before its first request; and it never fails nor
waits: a journal that can't be written is given up, and the run goes on. What lies in its place and is no journal (a
link, a pipe, somebody's file, that of another run that goes on) stays as it is.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from mcpace import __version__

if TYPE_CHECKING:
    from mcpace.lab.load.experiment import Watcher
    from mcpace.lab.progress import Progress
    from mcpace.report.model.load import LoadSecond

FORMAT: Literal["mcpace.live/1"] = "mcpace.live/1"
SUFFIX = ".live"
HEAD = json.dumps({"live": FORMAT})[:-1].encode()
"""How each journal begins."""


def place(out: Path) -> Path:
    """Where the journal of a run is that is going to be saved in ``out``."""
    return out.with_name(f"{out.name}{SUFFIX}")


def forget(out: Path) -> None:
    """The run is saved."""
    path = place(out)
    descriptor = _taken(path, os.O_RDWR)
    if descriptor is not None:
        try:
            if os.fstat(descriptor).st_size:  # of nothing nobody knows whose it is
                path.unlink(missing_ok=True)
        except OSError:
            return
        finally:
            os.close(descriptor)


@contextmanager
def kept(told: Progress, out: Path | None, kind: str, what: str) -> Iterator[Progress]:
    """``told``, and a journal of what it is told where the run has a file to be saved in."""
    with _opened(out, kind, what) as file:
        yield told if file is None else _Told(told, file)


@contextmanager
def kept_load(told: Watcher, out: Path | None, what: str) -> Iterator[Watcher]:
    """The same of a load."""
    with _opened(out, "load", what) as file:
        yield told if file is None else _Watched(told, file)


@contextmanager
def _opened(out: Path | None, kind: str, what: str) -> Iterator[_Lines | None]:
    """The file; where the experiment fails, it is removed: nothing will be saved."""
    lines = None if out is None else _begin(out, kind, what)
    if lines is None or out is None:
        yield None
        return
    try:
        yield lines
    except BaseException:
        lines.close()
        forget(out)
        raise
    lines.close()


def _begin(out: Path, kind: str, what: str) -> _Lines | None:
    if out.exists() and not out.is_file():
        return None  # a pipe or a device
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _taken(place(out), os.O_RDWR | os.O_CREAT)
        if descriptor is None:
            return None
        os.ftruncate(descriptor, 0)
        lines = _Lines(os.fdopen(descriptor, "w", encoding="utf-8", buffering=1))
    except OSError:
        return None
    started = datetime.now(UTC).isoformat(timespec="seconds")
    lines.write("live", FORMAT, kind=kind, what=what, started=started, mcpace=__version__, pid=os.getpid())
    return lines


def _taken(path: Path, flags: int) -> int | None:
    """A journal's descriptor, locked as long as it is open; ``None`` where there is something else, or it is in use."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and os.pread(descriptor, len(HEAD), 0) in (b"", HEAD):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


class _Lines:
    """The file, a line at a time."""

    def __init__(self, file: IO[str]) -> None:
        self._file: IO[str] | None = file

    def write(self, name: str, value: Any, **more: Any) -> None:
        """One line. Where the disk takes no more, no further one is tried."""
        try:
            if self._file is not None:
                self._file.write(json.dumps({name: value, **more}) + "\n")
        except (OSError, ValueError):
            self.close()

    def close(self) -> None:
        """Harmless the second time."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError:
            return


class _Told:
    """A :class:`mcpace.lab.progress.Progress`."""

    def __init__(self, told: Progress, lines: _Lines) -> None:
        self._told, self._lines = told, lines

    def preparing(self, what: str) -> None:
        self._lines.write("preparing", what)
        self._told.preparing(what)

    def begin(self, steps: int) -> None:
        self._lines.write("begin", steps)
        self._told.begin(steps)

    def step(self, what: str) -> None:
        self._lines.write("step", what)
        self._told.step(what)

    def note(self, text: str) -> None:
        self._lines.write("note", text)
        self._told.note(text)

    def sample(self, group: str, row: str, value: float, unit: Literal["s", "per second"] = "s") -> None:
        self._lines.write("sample", value, group=group, row=row, unit=unit)
        self._told.sample(group, row, value, unit)


class _Watched:
    """A :class:`mcpace.lab.load.experiment.Watcher`."""

    def __init__(self, told: Watcher, lines: _Lines) -> None:
        self._told, self._lines = told, lines

    def preparing(self, what: str) -> None:
        self._lines.write("preparing", what)
        self._told.preparing(what)

    def note(self, text: str) -> None:
        self._lines.write("note", text)
        self._told.note(text)

    def begin(self, planned_s: float) -> None:
        self._lines.write("planned_s", planned_s)
        self._told.begin(planned_s)

    def second(self, second: LoadSecond) -> None:
        self._lines.write("second", second.model_dump(mode="json"))
        self._told.second(second)
