"""Words for the time inside a tool: one row for each dependency, package, and line of the server's own code.

The rows of :func:`split_rows` add up to the time of a call at the server, but for less than :data:`LEAST_SHARE`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mcpace.report.model.inside import DependencyWait, LineTime, ToolTime
from mcpace.report.model.run import Case
from mcpace.report.words.quantities import clean, count
from mcpace.report.words.source_place import place_words

LEAST_SHARE = 0.01
"""Smaller shares of a call are joined, or left out where they are lines."""
NO_SOURCE = "no source tells"

Kind = Literal["dependency", "own", "library", "waiting", "others", "rest"]


@dataclass(frozen=True)
class TimeRow:
    """A part of a call's time."""

    kind: Kind
    time_s: float
    words: str


def title(case: Case) -> str:
    """``Inside forecast``."""
    return f"Inside {clean(case.tool or 'the tool', 40)}"


def basis(inside: ToolTime) -> str:
    """``mean of 10 calls after the first``."""
    return f"mean of {count(inside.calls, 'call')}{' after the first' if inside.first_calls else ''}"


def notes(inside: ToolTime) -> list[str]:
    """Sources that gave nothing, and calls that are left out."""
    found = [missing_words(reason) for reason in inside.missing]
    if inside.overlapping:
        found.append(f"{count(inside.overlapping, 'call')} overlapped others and can't be told apart")
    if inside.traced:
        found.append(f"{count(inside.traced, 'call')} overlapped others and are told apart by their traces")
    return found


def missing_words(reason: str) -> str:
    """A source that gave nothing."""
    return f"missing: {clean(reason, 300)}"


def split_rows(inside: ToolTime, most: int) -> list[TimeRow]:
    """At most ``most`` rows, the longest first. Dependencies and packages that take little time are one row."""
    named = [TimeRow("dependency", row.time_s, dependency_words(row)) for row in inside.dependencies]
    named += [
        TimeRow(
            "own" if row.package is None else "library",
            row.time_s,
            f"ran in {clean(row.package or 'the code of the server', 60)}",
        )
        for row in inside.packages
    ]
    always = [
        TimeRow("waiting", inside.waiting_s, "waited in a thread of the tool, see the lines below"),
        TimeRow("rest", inside.rest_s, NO_SOURCE),
    ]
    least_s = inside.server_s * LEAST_SHARE
    always = [row for row in always if row.time_s >= least_s and row.time_s > 0]
    named.sort(key=lambda row: -row.time_s)
    room = max(most - len(always), 1)
    shown = [row for row in named if row.time_s >= least_s and row.time_s > 0][:room]
    # The time that is left counts rows that the Run leaves out, too.
    left_s = inside.server_s - _sum_s(shown) - _sum_s(always)
    if left_s >= least_s and len(shown) < len(named):
        shown = shown[: room - 1]
        shown.append(_joined(named[len(shown) :], inside.server_s - _sum_s(shown) - _sum_s(always)))
    return sorted([*shown, *always], key=lambda row: -row.time_s)


def _joined(rows: list[TimeRow], time_s: float) -> TimeRow:
    kinds = {row.kind for row in rows}
    if kinds == {"dependency"}:
        words = f"waited for {count(len(rows), 'other dependency', 'other dependencies')}"
    elif "dependency" not in kinds:
        words = f"ran in {count(len(rows), 'other package')}"
    else:
        words = f"in {len(rows)} other packages and dependencies"
    return TimeRow("others", max(time_s, 0.0), words)


def _sum_s(rows: list[TimeRow]) -> float:
    return sum(row.time_s for row in rows)


def line_rows(inside: ToolTime, most: int) -> Iterator[TimeRow]:
    """Lines of the server's own code: at most ``most`` rows, the longest first."""
    own = [(line, line.running_s + line.waiting_s) for line in inside.lines]
    for line, time_s in [one for one in own if one[1] >= inside.server_s * LEAST_SHARE][:most]:
        yield TimeRow("own", time_s, line_words(line))


def line_words(line: LineTime) -> str:
    """``weather.py:13 forecast → AsyncClient.__init__``."""
    callee = f" → {clean(line.callee, 60)}" if line.callee else ""
    return f"{place_words(line.file, line.line)} {clean(line.function, 60)}{callee}"


def dependency_words(row: DependencyWait) -> str:
    """``waited for 127.0.0.1:8099, 5 requests``; ``waited, connected to 10.0.0.5:5432`` where no span tells more.
    ``waited for the program git, which it started`` while that program computes; ``waited for files, on threads of the
    runtime``; ``waited for a timer``."""
    if row.kind == "connection":
        return f"waited, connected to {clean(row.name, 60)}"
    if row.kind == "pool-work":
        return f"waited for {clean(row.name, 60)}, on threads of the runtime"
    if row.kind == "timer":
        return "waited for a timer"
    if row.kind == "program":
        return f"waited for the program {clean(row.name, 60)}, which it started"
    often = f"{row.requests:.0f}" if abs(row.requests - round(row.requests)) < 0.05 else f"{row.requests:.1f}"
    return f"waited for {clean(row.name, 60)}, {often} {'request' if often == '1' else 'requests'}"
