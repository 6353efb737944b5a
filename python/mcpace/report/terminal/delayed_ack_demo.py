"""Prints the load cases of the demo, one line each."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from mcpace.report.model.run import Run
from mcpace.report.terminal.lines import align_right, blank, fit_cell, heading
from mcpace.report.words.quantities import clean, common_unit

LONGEST_NAME = 40
FIGURE = 9
WIDE = 70
"""Width of a terminal whose heading has room for more than the title."""


def lines(run: Run, width: int) -> Iterator[Text]:
    """The load cases; no lines where there are none."""
    cases = [case for case in run.cases if case.load is not None]
    timed = [case.latency_s for case in cases if case.latency_s]
    if not timed:
        return
    unit = common_unit(told.p50 for told in timed)
    yield blank()
    yield heading("Under load", width, "the same event stream, written in two ways" if width >= WIDE else "")
    yield blank()
    columns = ("calls/s", f"p50 {unit.name}", f"p99 {unit.name}")
    names = [clean(case.target, LONGEST_NAME) for case in cases]
    room = min(max(map(cell_len, names)) + 4, max(width - FIGURE * len(columns), 0))
    yield Text(" " * room + "".join(align_right(column, FIGURE) for column in columns), style="dim")
    for name, case in zip(names, cases, strict=True):
        line = Text(fit_cell(f"  {name}", room))
        line.append(align_right(f"{case.throughput_rps or 0:,.0f}", FIGURE), style="bold")
        if case.latency_s:
            figures = (unit.figure(case.latency_s.p50), unit.figure(case.latency_s.p99))
            line.append("".join(align_right(figure, FIGURE) for figure in figures))
        codes = Text("".join(f"  {finding.code}" for finding in case.findings), style="bold red")
        if cell_len(line.plain) + cell_len(codes.plain) <= width:
            yield line + codes
        else:
            yield line
            yield Text("  ") + codes
