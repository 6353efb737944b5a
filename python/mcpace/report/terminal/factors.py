"""Prints experiments on a live target: one row for each factor, followed by its advice."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from mcpace.report.model.factors import Factor
from mcpace.report.model.run import Run
from mcpace.report.terminal.lines import align_right, blank, fit_cell, heading, wrap_paragraph
from mcpace.report.words.factors import advice_words, interval_words, left_out, name_words, ratio_words
from mcpace.report.words.quantities import duration
from mcpace.report.words.start import short_name

NAME, FIGURE, RATIO = 40, 9, 22
STYLES = {"slower": "bold red", "faster": "bold green"}


def lines(run: Run, width: int) -> Iterator[Text]:
    """The experiments; no lines where there were none."""
    tried = [one for one in run.factors if one.verdict not in ("refused", "left-out")]
    if not run.factors:
        return
    yield blank()
    where = short_name(run.cases[0].target) if run.cases else ""
    yield heading("One thing changed at a time", width, where)
    if tried:
        titles = zip(("base", "changed", interval_words(run)), (FIGURE, FIGURE, RATIO), strict=True)
        yield Text(" " * NAME + "".join(align_right(title, width) for title, width in titles), style="dim")
    for factor in tried:
        yield _row(factor)
        if factor.verdict in STYLES and (advice := advice_words(factor)):
            yield from wrap_paragraph(advice, width, indent=4, hang=4, style="dim")
    for sentence in left_out(run):
        yield blank()
        yield from wrap_paragraph(sentence, width, hang=2, style="dim")


def _row(factor: Factor) -> Text:
    line = Text(fit_cell(f"  {name_words(factor)}", NAME))
    for value in (factor.base_s, factor.changed_s):
        line.append(align_right(duration(value) if value is not None else "", FIGURE))
    line.append(align_right(ratio_words(factor), RATIO), style=STYLES.get(factor.verdict, "dim"))
    return line
