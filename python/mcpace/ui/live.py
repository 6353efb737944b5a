"""Reads the journal of a run in progress (:mod:`mcpace.lab.journal`), as far as the page shows it.

Design constraint: the last line may be incomplete, and the file may be no journal, so unintelligible lines are skipped.
A journal only grows, so each reading continues where the last one ended, and keeps only the data that is shown.
"""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, get_args

from pydantic import ValidationError

from mcpace.lab.journal import FORMAT
from mcpace.report.model.load import LoadSecond
from mcpace.report.model.run import Kind
from mcpace.report.page.load import series
from mcpace.report.page.model import Head, Live, Sample
from mcpace.report.words.quantities import clean
from mcpace.system.process_groups import is_alive

CHUNK_BYTES = 2**20
"""Size of one read, and maximum length of a line. A journal has no longer lines."""
MOST_BYTES = 256 * 2**20
"""Maximum number of bytes that one call of :meth:`Journal.look` reads. The next call continues there."""
MOST_NOTES = 50
MOST_VALUES = 400
"""Maximum number of values in a row of samples; the newest are kept."""
MOST_ROWS = 200
MOST_SECONDS = 86_400
"""Maximum number of seconds of a load; the newest are kept."""
MOST_STEPS = 2**31


class Journal:
    """A journal that is read repeatedly while it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._begin()

    def look(self) -> Live | None:
        """Reads the new lines and returns the state of the run; ``None`` where the file is missing or isn't a
        journal."""
        with self._lock:
            try:
                with self._path.open("rb") as file:
                    self._read_on(file)
            except OSError:
                return None
            return self._live()

    def _begin(self) -> None:
        self._position = 0
        self._mark = b""
        self._first: dict[str, Any] | None = None
        self._state = _JournalState()
        self._skipping = False

    def _read_on(self, file: IO[bytes]) -> None:
        # A changed first line, which contains the time and the process, means that another run has replaced the file.
        if file.read(len(self._mark)) != self._mark or os.fstat(file.fileno()).st_size < self._position:
            self._begin()
        file.seek(self._position)
        end = self._position + MOST_BYTES
        while self._position < end and (lines := self._lines(file.read(CHUNK_BYTES))) is not None:
            file.seek(self._position)
            for line in lines:
                self._take(line)

    def _lines(self, chunk: bytes) -> list[bytes] | None:
        """The complete lines of a chunk; ``None`` where there is no complete line yet."""
        whole, newline, _ = chunk.rpartition(b"\n")
        if not newline:
            if len(chunk) < CHUNK_BYTES:
                return None
            self._position += len(chunk)
            self._skipping = True
            return []
        lines = whole.split(b"\n")
        if self._skipping:
            lines[0] = b""
            self._skipping = False
        self._position += len(whole) + 1
        return lines

    def _take(self, line: bytes) -> None:
        found = _parse_line(line)
        if self._first is None:
            self._first, self._mark = found or {}, line
        elif found is not None and _is_ours(self._first):
            self._state.take(found)

    def _live(self) -> Live | None:
        first, told = self._first, self._state
        if first is None or not _is_ours(first):
            return None
        return Live(
            head=Head(
                kind=str(first["kind"]),
                started=clean(first.get("started", ""), 40),
                mcpace=clean(first.get("mcpace", ""), 40),
                partial=True,
                verdict=[],
                subjects=clean(first.get("what", ""), 200),
            ),
            step=told.step,
            done=told.done,
            steps=told.steps,
            planned_s=told.planned_s,
            notes=list(told.notes),
            samples=list(told.rows()),
            series=series(list(told.seconds)),
            ended=not _is_alive(first.get("pid")),
        )


@dataclass
class _Row:
    """The newest values of a row of samples."""

    unit: Any
    values: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_VALUES))


@dataclass
class _JournalState:
    """State of a run according to the lines that were read."""

    step: str = ""
    done: int = 0
    steps: int | None = None
    planned_s: float | None = None
    notes: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_NOTES))
    samples: dict[tuple[str, str], _Row] = field(default_factory=dict)
    seconds: deque[LoadSecond] = field(default_factory=lambda: deque(maxlen=MOST_SECONDS))
    _stepped: bool = False

    def take(self, line: dict[str, Any]) -> None:
        """Applies one line. Unknown lines, from a later release, are ignored."""
        match line:
            case {"preparing": what}:
                self.step = f"preparing {clean(what, 200)}"
            case {"begin": int(steps)} if 0 <= steps < MOST_STEPS:
                self.steps, self.done, self._stepped = steps, 0, False
            case {"step": what}:
                self.done += self._stepped
                self.step, self._stepped = clean(what, 200), True
            case {"planned_s": int() | float() as planned} if _is_time(planned):
                self.planned_s, self.step = float(planned), "load"
            case {"note": text}:
                self.notes.append(clean(text))
            case {"sample": int() | float() as value, "group": group, "row": row, "unit": "s" | "per second" as unit}:
                if _is_time(value):
                    self._sample(clean(group, 120), clean(row, 80), float(value), unit)
            case {"second": second}:
                self._second(second)

    def rows(self) -> Iterator[Sample]:
        """The samples for the page."""
        for (group, row), one in self.samples.items():
            yield Sample(group=group, row=row, values=list(one.values), unit=one.unit)

    def _sample(self, group: str, row: str, value: float, unit: Any) -> None:
        if (group, row) in self.samples or len(self.samples) < MOST_ROWS:
            self.samples.setdefault((group, row), _Row(unit)).values.append(value)

    def _second(self, second: object) -> None:
        try:
            self.seconds.append(LoadSecond.model_validate(second))
        except ValidationError:
            return


def _is_ours(first: dict[str, Any]) -> bool:
    return first.get("live") == FORMAT and first.get("kind") in get_args(Kind)


def _is_time(value: float) -> bool:
    """Whether a value is a possible time: neither NaN, infinite nor negative, nor too large an integer for a float."""
    return 0 <= value < 2**63


def _parse_line(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_alive(pid: object) -> bool:
    """Whether a process exists. A process that may not be signalled exists."""
    if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 2**31:
        return False
    return is_alive(pid)
