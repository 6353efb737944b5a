"""Prints where the time inside a tool went: its dependencies, the packages that ran, and the lines of its own code.

Where calls overlap, it prints sums instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from mcpace.report.model.inside import AddedTime, InsideSums, ToolTime
from mcpace.report.model.run import Case, Run
from mcpace.report.terminal.lines import align_right, blank, heading, wrap_indented
from mcpace.report.words import inside_sums, tool_time
from mcpace.report.words.quantities import duration, share
from mcpace.report.words.spans import join_sentences

MOST_PARTS = 5
MOST_LINES = 5
FIGURES = 18
"""Columns of the figures before the words of a row."""
LINES_TITLE = "  by line of the server's code, running or waiting there"


def lines(run: Run, width: int) -> Iterator[Text]:
    """The time inside each tool that was looked into; no lines where there is none."""
    for case in run.cases:
        if case.inside is not None:
            yield blank()
            yield from _tool(case, case.inside, width)
        if case.inside_sums is not None:
            yield blank()
            yield from _sums(case, case.inside_sums, width, is_comparison=run.kind == "servers")
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
        yield from _row(row, inside.server_s, width)
    own = list(tool_time.line_rows(inside, MOST_LINES))
    if own:
        yield Text(LINES_TITLE, style="dim")
    for row in own:
        yield from _row(row, inside.server_s, width, "dim")
    yield from _added(inside.added, width)


def _sums(case: Case, sums: InsideSums, width: int, *, is_comparison: bool) -> Iterator[Text]:
    yield heading(inside_sums.title(case, is_comparison=is_comparison), width, inside_sums.basis(sums))
    for reason in sums.missing:
        yield from wrap_indented(Text(tool_time.missing_words(reason), style="yellow"), width, 2, 4)
    if not sums.calls or not (sums.samples or sums.spans):
        return
    yield from wrap_indented(Text(inside_sums.overlap_words(sums), style="dim"), width, 2, 2)
    for row in inside_sums.package_rows(sums, MOST_PARTS):
        yield from _row(row, sums.running_s, width)
    for row in inside_sums.dependency_rows(sums, MOST_PARTS):
        yield from _row(row, None, width)
    own = inside_sums.line_rows(sums, MOST_LINES)
    if own:
        yield Text(LINES_TITLE, style="dim")
    for row in own:
        yield from _row(row, None, width, "dim")
    yield from _added(sums.added, width)


def _added(added: AddedTime | None, width: int) -> Iterator[Text]:
    if added is not None:
        yield from wrap_indented(Text(inside_sums.added_words(added), style="dim"), width, 2, 2)


def _row(row: tool_time.TimeRow, whole_s: float | None, width: int, style: str = "") -> Iterator[Text]:
    """A row with its share of ``whole_s``; without a share where the rows have no common whole."""
    figures = Text("  ")
    figures.append(align_right(duration(row.time_s), 8), style="bold")
    figures.append(align_right("" if whole_s is None else share(row.time_s, whole_s), 6) + "  ")
    words = list(wrap_indented(Text(row.words, style=style), width, FIGURES, FIGURES))
    for number, line in enumerate(words):
        yield line if number else figures + line[FIGURES:]
