"""Reads the journal of a run in progress (:mod:`mcpace.lab.journal`) into what is shown of it.

Design constraint: the last line may be half written, and the file may be anybody's: what makes no sense is passed over.
A journal only grows, so each look reads on from where the last one ended, and keeps no more than is shown.
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

CHUNK_BYTES = 2**20
"""Of a read, and of a line: a longer one is none of ours."""
MOST_BYTES = 256 * 2**20
"""Of a look: the next one goes on from there."""
MOST_NOTES = 50
MOST_VALUES = 400
"""Of a row of samples: the newest."""
MOST_ROWS = 200
MOST_SECONDS = 86_400
"""Of a load: the newest day."""
MOST_STEPS = 2**31


class Journal:
    """A file that is looked at again and again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._begin()

    def look(self) -> Live | None:
        """What is known by now; ``None`` where there is nothing, or nothing of ours."""
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
        self._told = _Told()
        self._skipping = False

    def _read_on(self, file: IO[bytes]) -> None:
        # By its first line, which has the moment and the process: another run writes into the same file.
        if file.read(len(self._mark)) != self._mark or os.fstat(file.fileno()).st_size < self._position:
            self._begin()
        file.seek(self._position)
        end = self._position + MOST_BYTES
        while self._position < end and (lines := self._lines(file.read(CHUNK_BYTES))) is not None:
            file.seek(self._position)
            for line in lines:
                self._take(line)

    def _lines(self, chunk: bytes) -> list[bytes] | None:
        """The whole lines of what was read; ``None`` where there is nothing more by now."""
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
        found = _parsed(line)
        if self._first is None:
            self._first, self._mark = found or {}, line
        elif found is not None and _is_ours(self._first):
            self._told.take(found)

    def _live(self) -> Live | None:
        first, told = self._first, self._told
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
            ended=not _alive(first.get("pid")),
        )


@dataclass
class _Row:
    """The newest values of a row of samples."""

    unit: Any
    values: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_VALUES))


@dataclass
class _Told:
    """What the lines have told so far."""

    step: str = ""
    done: int = 0
    steps: int | None = None
    planned_s: float | None = None
    notes: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_NOTES))
    samples: dict[tuple[str, str], _Row] = field(default_factory=dict)
    seconds: deque[LoadSecond] = field(default_factory=lambda: deque(maxlen=MOST_SECONDS))
    _stepped: bool = False

    def take(self, line: dict[str, Any]) -> None:
        """One line; unknown ones are a later release's."""
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
        """The samples as they are shown."""
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
    """Neither of what JSON has beyond numbers, nor of integers that no float holds."""
    return 0 <= value < 2**63


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _alive(pid: object) -> bool:
    """Whether that process still is; of one that can't be asked after, it is taken to."""
    if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 2**31:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
