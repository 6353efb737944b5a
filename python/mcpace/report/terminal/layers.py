"""Prints the layers of one server: a row for each, with its share as a bar, and then the contents of each."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from mcpace.report.model.run import Case, Run
from mcpace.report.terminal.lines import align_right, blank, fit_cell, heading, wrap_paragraph
from mcpace.report.words.layers import (
    conditions,
    layer_name,
    measured_cases,
    over_words,
    ratio_words,
    remark,
    share_words,
)
from mcpace.report.words.quantities import Unit, clean, common_unit

NAME, FIGURE = 13, 10
SPREAD = 17
BAR = "▆"
LONGEST_BAR = 24


def lines(run: Run, width: int) -> Iterator[Text]:
    """The layers; no lines where none was requested."""
    if not run.cases:
        return
    first = run.cases[0]
    yield blank()
    yield heading(
        f"{clean(first.tool or '', 30)} at {clean(first.target, 40)}", width, clean(first.subject.label(), 40)
    )
    yield blank()
    measured = measured_cases(run)
    unit = common_unit(case.median_s or 0.0 for case in measured)
    columns = ("median", FIGURE), ("quartiles", SPREAD), ("over direct", 13), ("ratio", 9), ("share", 8)
    header = fit_cell(f"  {unit.name}", NAME) + "".join(align_right(name, room) for name, room in columns)
    yield Text(header, style="dim")
    for case in run.cases:
        yield from _row(case, unit, width)
    yield blank()
    yield heading("What each includes", width)
    for sentence in conditions(run):
        yield from wrap_paragraph(sentence, width, hang=2)


def _row(case: Case, unit: Unit, width: int) -> Iterator[Text]:
    line = Text(fit_cell(f"  {layer_name(case)}", NAME))
    layer = case.layer
    if case.median_s is None or layer is None:
        for number, part in enumerate(wrap_paragraph(remark(case), width, indent=NAME + 2, style="dim")):
            yield part if number else line + part[NAME:]
        return
    line.append(align_right(unit.figure(case.median_s), FIGURE), style="bold")
    low, high = layer.low_s or case.median_s, layer.high_s or case.median_s
    line.append(align_right(f"{unit.figure(low)}–{unit.figure(high)}", SPREAD))
    line.append(align_right(over_words(case), 13) + align_right(ratio_words(case), 9))
    line.append(align_right(share_words(case), 8))
    room = min(max(width - len(line.plain) - 2, 0), LONGEST_BAR)
    cells = round(min(max(layer.share or 0.0, 0.0), 1.0) * room)
    line.append("  " + BAR * cells, style="color(172)")
    yield line
    if case.error:
        yield from wrap_paragraph(remark(case), width, indent=4, hang=6, style="yellow")
