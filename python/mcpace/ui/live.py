"""Reads the journal of a run in progress (:mod:`mcpace.lab.journal`) into what is shown of it.

Design constraint: the last line may be half written, and the file may be anybody's: what makes no sense is passed over.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from mcpace.lab.journal import FORMAT
from mcpace.report.page_load import series
from mcpace.report.page_model import Head, Live, Sample
from mcpace.report.quantities import clean
from mcpace.report.run import Kind
from mcpace.report.run_load import LoadSecond

MOST_BYTES = 32 * 2**20
MOST_NOTES = 50
MOST_VALUES = 400
"""Of a row of samples: the newest."""
MOST_ROWS = 200


def read(path: Path) -> Live | None:
    """What is known so far; ``None`` where there is nothing, or nothing of ours."""
    try:
        with path.open("rb") as file:
            lines = file.read(MOST_BYTES).split(b"\n")
    except OSError:
        return None
    first = _parsed(lines[0])
    if first is None or first.get("live") != FORMAT or first.get("kind") not in get_args(Kind):
        return None
    told = _Told()
    for line in lines[1:]:
        found = _parsed(line)
        if found is not None:
            told.take(found)
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
        notes=told.notes[-MOST_NOTES:],
        samples=list(told.samples.values()),
        series=series(told.seconds),
        ended=not _alive(first.get("pid")),
    )


@dataclass
class _Told:
    """Line by line."""

    step: str = ""
    done: int = 0
    steps: int | None = None
    planned_s: float | None = None
    notes: list[str] = field(default_factory=list)
    samples: dict[tuple[str, str], Sample] = field(default_factory=dict)
    seconds: list[LoadSecond] = field(default_factory=list)
    _stepped: bool = False

    def take(self, line: dict[str, Any]) -> None:
        """One line; unknown ones are a later release's."""
        match line:
            case {"preparing": what}:
                self.step = f"preparing {clean(what, 200)}"
            case {"begin": int(steps)}:
                self.steps, self.done, self._stepped = steps, 0, False
            case {"step": what}:
                self.done += self._stepped
                self.step, self._stepped = clean(what, 200), True
            case {"planned_s": int() | float() as planned}:
                self.planned_s, self.step = float(planned), "load"
            case {"note": text}:
                self.notes.append(clean(text))
            case {"sample": int() | float() as value, "group": group, "row": row, "unit": "s" | "per second" as unit}:
                self._sample(clean(group, 120), clean(row, 80), float(value), unit)
            case {"second": second}:
                self._second(second)

    def _sample(self, group: str, row: str, value: float, unit: Any) -> None:
        if (group, row) not in self.samples and len(self.samples) >= MOST_ROWS:
            return
        one = self.samples.setdefault((group, row), Sample(group=group, row=row, values=[], unit=unit))
        one.values = [*one.values[-(MOST_VALUES - 1) :], value]

    def _second(self, second: object) -> None:
        try:
            self.seconds.append(LoadSecond.model_validate(second))
        except ValidationError:
            return


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
