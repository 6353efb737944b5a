"""Prints where the time inside a tool went: its dependencies, the packages that ran, and the lines of its own code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from rich.text import Text

from mcpace.report.model.inside import ToolTime
from mcpace.report.model.run import Case, Run
from mcpace.report.terminal.lines import align_right, blank, heading, wrap_indented
from mcpace.report.words.quantities import clean, count, duration, share
from mcpace.report.words.spans import join_sentences

MOST_ROWS = 6
LEAST_SHARE = 0.01
"""Rows below this share of a call are left out."""


def lines(run: Run, width: int) -> Iterator[Text]:
    """The time inside each tool that was looked into; no lines where there is none."""
    for case in run.cases:
        if case.inside is not None:
            yield blank()
            yield from _tool(case, case.inside, width)
    told = join_sentences(run.recording) if run.recording else []
    if told:
        yield blank()
        yield heading("Spans", width)
    for sentence in told:
        yield from wrap_indented(Text(sentence, style="dim"), width, 2, 2)


def _tool(case: Case, inside: ToolTime, width: int) -> Iterator[Text]:
    tool = clean(case.tool or "the tool", 40)
    yield heading(f"Inside {tool}", width, f"mean of {count(inside.calls, 'call')}")
    for reason in inside.missing:
        yield from wrap_indented(Text(f"missing: {clean(reason, 300)}", style="yellow"), width, 2, 11)
    if inside.overlapping:
        left = f"{count(inside.overlapping, 'call')} overlapped others and can't be told apart"
        yield from wrap_indented(Text(left, style="dim"), width, 2, 2)
    if inside.traced:
        told = f"{count(inside.traced, 'call')} overlapped others and are told apart by their traces"
        yield from wrap_indented(Text(told, style="dim"), width, 2, 2)
    if not inside.calls:
        return
    rows = [(row.time_s, _dependency(row.name, row.requests)) for row in inside.dependencies]
    rows += [(row.time_s, f"ran in {clean(row.package or 'the code of the server', 60)}") for row in inside.packages]
    rows.append((inside.waiting_s, "waited in a thread of the tool, see the lines below"))
    rows.append((inside.rest_s, "no source tells"))
    rows = [(time_s, words) for time_s, words in rows if time_s >= inside.server_s * LEAST_SHARE]
    for time_s, words in sorted(rows, key=lambda row: -row[0])[:MOST_ROWS]:
        yield _row(time_s, inside.server_s, Text(words))
    if inside.lines:
        yield Text("  by line of the server's code, running or waiting there", style="dim")
    own = [line for line in inside.lines if line.running_s + line.waiting_s >= inside.server_s * LEAST_SHARE]
    for line in own[:MOST_ROWS]:
        callee = f" → {clean(line.callee, 60)}" if line.callee else ""
        place = f"{clean(PurePath(line.file).name, 60)}:{line.line} {clean(line.function, 60)}{callee}"
        yield _row(line.running_s + line.waiting_s, inside.server_s, Text(place, style="dim"))


def _dependency(name: str, requests: float) -> str:
    often = f"{requests:.0f}" if abs(requests - round(requests)) < 0.05 else f"{requests:.1f}"
    return f"waited for {clean(name, 60)}, {often} {'request' if often == '1' else 'requests'}"


def _row(time_s: float, whole_s: float, words: Text) -> Text:
    line = Text("  ")
    line.append(align_right(duration(time_s), 8), style="bold")
    line.append(align_right(share(time_s, whole_s), 6) + "  ")
    return line.append_text(words)
