"""Prints where the time inside a tool went: its dependencies, the packages that ran, and the lines of its own code.

Where calls overlap, it prints sums instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from rich.text import Text

from mcpace.report.model.inside import AddedTime, InsideSums, LineTime, ToolTime
from mcpace.report.model.run import Case, Run
from mcpace.report.terminal.lines import align_right, blank, heading, wrap_indented
from mcpace.report.words.inside import added_words, overlap_words
from mcpace.report.words.quantities import clean, count, duration, share

MOST_ROWS = 6
LEAST_SHARE = 0.01
"""Rows below this share of a call are left out."""


def lines(run: Run, width: int) -> Iterator[Text]:
    """The time inside each tool that was looked into; no lines where there is none."""
    for case in run.cases:
        if case.inside is not None:
            yield blank()
            yield from _tool(case, case.inside, width)
        if case.inside_sums is not None:
            yield blank()
            yield from _sums(case, case.inside_sums, width, is_comparison=run.kind == "servers")


def _tool(case: Case, inside: ToolTime, width: int) -> Iterator[Text]:
    tool = clean(case.tool or "the tool", 40)
    yield heading(f"Inside {tool}", width, f"mean of {count(inside.calls, 'call')}")
    yield from _missing(inside.missing, width)
    if inside.overlapping:
        left = f"{count(inside.overlapping, 'call')} overlapped others and can't be told apart"
        yield from wrap_indented(Text(left, style="dim"), width, 2, 2)
    if not inside.calls:
        return
    rows = [(row.time_s, _dependency(row.name, row.requests)) for row in inside.dependencies]
    rows += [(row.time_s, f"ran in {clean(row.package or 'the code of the server', 60)}") for row in inside.packages]
    rows.append((inside.waiting_s, "waited in a thread of the tool, see the lines below"))
    rows.append((inside.rest_s, "no source tells"))
    yield from _rows(rows, inside.server_s)
    yield from _lines(inside.lines, inside.server_s)
    yield from _added(inside.added, width)


def _sums(case: Case, sums: InsideSums, width: int, *, is_comparison: bool) -> Iterator[Text]:
    subject = clean(case.subject.label() if is_comparison else case.tool or "the server", 40)
    yield heading(f"Inside {subject} under load", width, f"mean of {count(sums.calls, 'call')}")
    yield from _missing(sums.missing, width)
    if not sums.calls or not (sums.samples or sums.spans):
        return
    yield from wrap_indented(Text(overlap_words(sums), style="dim"), width, 2, 2)
    whole_s = max(sums.running_s, *(row.time_s for row in sums.dependencies), 0.0)
    rows = [(row.time_s, f"ran in {clean(row.package or 'the code of the server', 60)}") for row in sums.packages]
    yield from _rows(rows, whole_s, of_s=sums.running_s)
    for row in sums.dependencies[:MOST_ROWS]:
        each_s = row.time_s / row.requests if row.requests else 0.0
        words = f"{_dependency(row.name, row.requests)}, {duration(each_s)} each"
        yield _row(row.time_s, 0.0, Text(words))
    yield from _lines(sums.lines, whole_s, of_s=0.0)
    yield from _added(sums.added, width)


def _missing(reasons: Sequence[str], width: int) -> Iterator[Text]:
    for reason in reasons:
        yield from wrap_indented(Text(f"missing: {clean(reason, 300)}", style="yellow"), width, 2, 11)


def _rows(rows: Sequence[tuple[float, str]], whole_s: float, *, of_s: float | None = None) -> Iterator[Text]:
    """The longest rows, each with its share of ``of_s``; of ``whole_s`` unless given."""
    notable = [(time_s, words) for time_s, words in rows if time_s >= whole_s * LEAST_SHARE]
    for time_s, words in sorted(notable, key=lambda row: -row[0])[:MOST_ROWS]:
        yield _row(time_s, whole_s if of_s is None else of_s, Text(words))


def _lines(own: Sequence[LineTime], whole_s: float, *, of_s: float | None = None) -> Iterator[Text]:
    if own:
        yield Text("  by line of the server's code, running or waiting there", style="dim")
    notable = [line for line in own if line.running_s + line.waiting_s >= whole_s * LEAST_SHARE]
    for line in notable[:MOST_ROWS]:
        callee = f" → {clean(line.callee, 60)}" if line.callee else ""
        place = f"{clean(PurePath(line.file).name, 60)}:{line.line} {clean(line.function, 60)}{callee}"
        yield _row(line.running_s + line.waiting_s, whole_s if of_s is None else of_s, Text(place, style="dim"))


def _added(added: AddedTime | None, width: int) -> Iterator[Text]:
    if added is not None:
        yield from wrap_indented(Text(added_words(added), style="dim"), width, 2, 2)


def _dependency(name: str, requests: float) -> str:
    often = f"{requests:.0f}" if abs(requests - round(requests)) < 0.05 else f"{requests:.1f}"
    return f"waited for {clean(name, 60)}, {often} {'request' if often == '1' else 'requests'}"


def _row(time_s: float, whole_s: float, words: Text) -> Text:
    line = Text("  ")
    line.append(align_right(duration(time_s), 8), style="bold")
    line.append(align_right(share(time_s, whole_s) if whole_s else "", 6) + "  ")
    return line.append_text(words)
