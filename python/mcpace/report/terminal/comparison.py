"""Prints a comparison: for each operation or figure both sides, the ratio and the smallest detectable change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from mcpace.report.model.comparison import Compared
from mcpace.report.model.run import Run
from mcpace.report.terminal.lines import align_right, blank, fit_cell, heading, wrap_paragraph
from mcpace.report.words.comparison import (
    METRICS,
    left_out,
    operation_words,
    ratio_words,
    sees_words,
    turn_targets,
    value,
    verdict_words,
    warnings,
)
from mcpace.report.words.quantities import clean

NAME, FIGURE, RATIO, SEES, VERDICT = 13, 11, 19, 8, 17
STYLES = {"worse": "bold red", "better": "green", "same": "", "unclear": "dim"}
ALLOWED = "red"
SHORT = {"cpu": "CPU a call", "stall": "standstill"}
LONGEST = 40
"""Maximum width of a row's name."""


def lines(run: Run, width: int) -> Iterator[Text]:
    """The comparison; no lines where nothing was compared."""
    made = run.comparison
    if made is None or not made.attempts:
        return
    for sentence in warnings(made):
        yield blank()
        yield from wrap_paragraph(sentence, width, style="yellow")
    turns = turn_targets(run)
    if turns is not None:
        yield blank()
        yield from wrap_paragraph(f"First: {turns[0]}. Second: {turns[1]}. Measured in turns.", width, style="dim")
    rows = made.attempts[-1].rows
    for (_, target, _), own in groupby(rows, key=lambda row: (row.subject, row.target, row.base_subject)):
        several = list(own)
        title = f"{clean(several[0].subject, 60)} · {clean(target, 60)}"
        other = several[0].base_subject
        right = f"against {clean(other, 60)}" if other != several[0].subject else ""
        if all(row.metric == "time" for row in several):
            # Each operation has one figure, so all fit into one table.
            yield from _table(title, right, [(operation_words(row), row) for row in several], width)
            continue
        for what, figures in groupby(several, key=operation_words):
            named = [(SHORT.get(row.metric, METRICS[row.metric]), row) for row in figures]
            yield from _table(f"{title} · {what}", right, named, width)
    for sentence in left_out(made):
        yield blank()
        yield from wrap_paragraph(sentence, width, hang=2, style="dim")


def _table(title: str, right: str, rows: list[tuple[str, Compared]], width: int) -> Iterator[Text]:
    room = width - FIGURE - FIGURE - RATIO - SEES - VERDICT
    first = max(NAME, min(room, LONGEST, max(cell_len(name) for name, _ in rows) + 2))
    yield blank()
    yield heading(title, width, right)
    columns = ("first", FIGURE), ("second", FIGURE), ("ratio (95 %)", RATIO), ("sees", SEES)
    yield Text(" " * first + "".join(align_right(name, room) for name, room in columns), style="dim")
    for name, row in rows:
        yield _row(row, fit_cell(f"  {name}", first))


def _row(row: Compared, name: str) -> Text:
    line = Text(name)
    line.append(align_right(value(row, row.base), FIGURE))
    line.append(align_right(value(row, row.now), FIGURE), style="bold")
    line.append(align_right(ratio_words(row), RATIO))
    line.append(align_right(sees_words(row), SEES), style="dim")
    allowed = row.verdict == "worse" and not row.breach
    line.append(f"  {verdict_words(row)}", style=ALLOWED if allowed else STYLES[row.verdict])
    return line
