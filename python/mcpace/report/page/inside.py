"""The time inside a tool for the page: its parts, its lines, and a flame graph that fills the whole call.

Where calls overlapped, the page has sums over the calls, and no flame graph.

The flame graph of a Run has the stacks only. Here it gets the waits for dependencies and the rest, so that its widths
add up to the time of a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from mcpace.report.model.inside import AddedTime, FlameGraph, InsideSums, ToolTime
from mcpace.report.model.run import Case, Run
from mcpace.report.page.model import FlameShown, InsideShown, TimeRowShown
from mcpace.report.words import inside_sums, tool_time
from mcpace.report.words.quantities import clean, round_digits, share
from mcpace.report.words.source_place import path_words, place_words

MOST_PARTS = 12
MOST_LINES = 12
MOST_NODES = 4_000
JOINED = "several short calls"

Origin = Literal["own", "library", "interpreter"]


def insides_of(run: Run) -> list[InsideShown]:
    """The tools that were looked into."""
    return [
        *(_inside_view(case, case.inside) for case in run.cases if case.inside is not None),
        *(_sums_view(run, case, case.inside_sums) for case in run.cases if case.inside_sums is not None),
    ]


def _inside_view(case: Case, inside: ToolTime) -> InsideShown:
    has_calls = inside.calls > 0
    return InsideShown(
        title=tool_time.title(case),
        where=f"{_place(case)}, {tool_time.basis(inside)}",
        whole_s=round_digits(inside.server_s),
        notes=tool_time.notes(inside),
        about=_added(inside.added) if has_calls else [],
        parts_title="Parts of a call",
        parts=_row_views(tool_time.split_rows(inside, MOST_PARTS), inside.server_s) if has_calls else [],
        lines=_row_views(tool_time.line_rows(inside, MOST_LINES), inside.server_s) if has_calls else [],
        flame=_flame_view(inside) if has_calls else None,
    )


def _sums_view(run: Run, case: Case, sums: InsideSums) -> InsideShown:
    packages = inside_sums.package_rows(sums, MOST_PARTS)
    dependencies = inside_sums.dependency_rows(sums, MOST_PARTS)
    lines = inside_sums.line_rows(sums, MOST_LINES)
    return InsideShown(
        title=inside_sums.title(case, is_comparison=run.kind == "servers"),
        where=f"{_place(case)}, {inside_sums.basis(sums)}",
        whole_s=round_digits(max((row.time_s for row in [*packages, *dependencies, *lines]), default=0.0)),
        notes=[tool_time.missing_words(reason) for reason in sums.missing],
        about=[inside_sums.overlap_words(sums), inside_sums.BARS, *_added(sums.added)],
        parts_title="Running threads and answer times, a call",
        parts=_row_views(packages, sums.running_s) + _row_views(dependencies, None),
        lines=_row_views(lines, None),
    )


def _place(case: Case) -> str:
    return f"{clean(case.subject.label(), 60)} at {clean(case.target, 120)}"


def _added(added: AddedTime | None) -> list[str]:
    return [] if added is None else [inside_sums.added_words(added)]


def _row_views(rows: Iterable[tool_time.TimeRow], whole_s: float | None) -> list[TimeRowShown]:
    """Rows with their shares of ``whole_s``; without shares where the rows have no common whole."""
    return [
        TimeRowShown(
            kind=row.kind,
            time_s=round_digits(row.time_s),
            share="" if whole_s is None else share(row.time_s, whole_s),
            words=row.words,
        )
        for row in rows
    ]


def _flame_view(inside: ToolTime) -> FlameShown:
    shown = FlameShown(names=[], places=[], kinds=[], parents=[], frames=[], running_s=[], waiting_s=[])
    if inside.flame is not None:
        _add_stacks(shown, inside.flame)
    for row in inside.dependencies:
        _add_block(shown, "dependency", tool_time.dependency_words(row), row.time_s)
    _add_block(shown, "rest", tool_time.NO_SOURCE, inside.rest_s)
    return shown


def _add_stacks(shown: FlameShown, flame: FlameGraph) -> None:
    for name, place, origin in _frames(flame):
        shown.names.append(name)
        shown.places.append(place)
        shown.kinds.append(origin)
    known = len(shown.names)
    shown.names.append(JOINED)
    shown.places.append("")
    shown.kinds.append("others")
    nodes = zip(flame.parents, flame.frames, flame.running_s, flame.waiting_s, strict=False)
    for number, (parent, frame, running_s, waiting_s) in enumerate(nodes):
        if number >= MOST_NODES or parent > number or frame > known:
            break  # No release of mcpace writes such a tree.
        shown.parents.append(parent)
        shown.frames.append(frame - 1 if frame else known)
        shown.running_s.append(round_digits(max(running_s, 0.0)))
        shown.waiting_s.append(round_digits(max(waiting_s, 0.0)))


def _frames(flame: FlameGraph) -> Iterator[tuple[str, str, Origin]]:
    """Name, place and origin of each function."""
    for function, file, line in zip(flame.functions, flame.files, flame.lines, strict=False):
        if file >= min(len(flame.paths), len(flame.origins)):
            return
        path = flame.paths[file]
        yield clean(function, 80), place_words(path, line) if line else path_words(path), flame.origins[file]


def _add_block(shown: FlameShown, kind: Literal["dependency", "rest"], words: str, time_s: float) -> None:
    """Adds a node beside the stacks."""
    if time_s > 0:
        shown.names.append(words)
        shown.places.append("")
        shown.kinds.append(kind)
        shown.parents.append(0)
        shown.frames.append(len(shown.names) - 1)
        shown.running_s.append(0.0)
        shown.waiting_s.append(round_digits(time_s))
