"""A comparison on a terminal: a row a figure with both sides, the ratio and its interval, what could have been seen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.text import Text

from mcpace.report.lines import blank, fitted, heading, right_aligned, wrapped
from mcpace.report.quantities import clean
from mcpace.report.run import Run
from mcpace.report.run_comparison import Compared
from mcpace.report.words_comparison import (
    METRICS,
    left_out,
    place,
    ratio_words,
    sees_words,
    value,
    verdict_words,
    warnings,
)

NAME, FIGURE, RATIO, SEES = 15, 11, 19, 8
STYLES = {"worse": "bold red", "better": "green", "same": "", "unclear": "dim"}


def lines(run: Run, width: int) -> Iterator[Text]:
    """Nothing where nothing was compared."""
    made = run.comparison
    if made is None or not made.attempts:
        return
    for sentence in warnings(made):
        yield blank()
        yield from wrapped(sentence, width, hang=2, style="yellow")
    rows = made.attempts[-1].rows
    for title, own in groupby(rows, key=lambda row: place(row.subject, row.target, row.operation, row.tool)):
        yield blank()
        several = list(own)
        other = several[0].base_subject
        yield heading(title, width, f"against {clean(other, 60)}" if other != several[0].subject else "")
        columns = ("first", FIGURE), ("second", FIGURE), ("ratio (95 %)", RATIO), ("sees", SEES)
        yield Text(" " * NAME + "".join(right_aligned(name, room) for name, room in columns), style="dim")
        for row in several:
            yield _row(row)
    for sentence in left_out(made):
        yield blank()
        yield from wrapped(sentence, width, hang=2, style="dim")


def _row(row: Compared) -> Text:
    name = "CPU a call" if row.metric == "cpu" else METRICS[row.metric]
    line = Text(fitted(f"  {name}", NAME))
    line.append(right_aligned(value(row, row.base), FIGURE))
    line.append(right_aligned(value(row, row.now), FIGURE), style="bold")
    line.append(right_aligned(ratio_words(row), RATIO))
    line.append(right_aligned(sees_words(row), SEES), style="dim")
    line.append(f"  {verdict_words(row)}", style=STYLES[row.verdict])
    return line
