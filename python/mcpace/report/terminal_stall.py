"""Cases of load beside other experiments, as in the demo: a line each."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from mcpace.report.lines import blank, fitted, heading, right_aligned
from mcpace.report.quantities import clean, common_unit
from mcpace.report.run import Run

NAME = 44
FIGURE = 9


def lines(run: Run, width: int) -> Iterator[Text]:
    """Nothing where there are none."""
    cases = [case for case in run.cases if case.load is not None]
    timed = [case.latency_s for case in cases if case.latency_s]
    if not timed:
        return
    unit = common_unit(told.p50 for told in timed)
    yield blank()
    yield heading("Under load", width, "the same event stream, written in two ways")
    yield blank()
    columns = ("calls/s", f"p50 {unit.name}", f"p99 {unit.name}")
    yield Text(" " * NAME + "".join(right_aligned(column, FIGURE) for column in columns), style="dim")
    for case in cases:
        line = Text(fitted(f"  {clean(case.target, NAME - 4)}", NAME))
        line.append(right_aligned(f"{case.throughput_rps or 0:,.0f}", FIGURE), style="bold")
        if case.latency_s:
            figures = (unit.figure(case.latency_s.p50), unit.figure(case.latency_s.p99))
            line.append("".join(right_aligned(figure, FIGURE) for figure in figures))
        line.append("".join(f"  {finding.code}" for finding in case.findings), style="bold red")
        yield line
