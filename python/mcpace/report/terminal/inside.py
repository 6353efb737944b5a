"""Prints where the time inside a tool went: its dependencies, the packages that ran, and the lines of its own code."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from mcpace.report.model.inside import ToolTime
from mcpace.report.model.run import Case, Run
from mcpace.report.terminal.lines import align_right, blank, heading, wrap_indented
from mcpace.report.words import tool_time
from mcpace.report.words.quantities import duration, share
from mcpace.report.words.spans import join_sentences

MOST_PARTS = 5
MOST_LINES = 5
FIGURES = 18
"""Columns of the figures before the words of a row."""


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
    yield heading(tool_time.title(case), width, tool_time.basis(inside))
    for note in tool_time.notes(inside):
        yield from wrap_indented(Text(note, style="yellow"), width, 2, 4)
    if not inside.calls:
        return
    for row in tool_time.split_rows(inside, MOST_PARTS):
        yield from _row(row, inside, width)
    own = list(tool_time.line_rows(inside, MOST_LINES))
    if own:
        yield Text("  by line of the server's code, running or waiting there", style="dim")
    for row in own:
        yield from _row(row, inside, width, "dim")


def _row(row: tool_time.TimeRow, inside: ToolTime, width: int, style: str = "") -> Iterator[Text]:
    figures = Text("  ")
    figures.append(align_right(duration(row.time_s), 8), style="bold")
    figures.append(align_right(share(row.time_s, inside.server_s), 6) + "  ")
    words = list(wrap_indented(Text(row.words, style=style), width, FIGURES, FIGURES))
    for number, line in enumerate(words):
        yield line if number else figures + line[FIGURES:]
