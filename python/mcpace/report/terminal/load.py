"""Prints a load: a table of operations, the errors, the timeline, the thresholds and the generator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from mcpace.report.model.load import Latencies, LoadOperation, LoadSecond
from mcpace.report.model.run import Case, Run
from mcpace.report.terminal.lines import align_right, blank, fit_cell, heading, wrap_paragraph
from mcpace.report.words.load import (
    due_seconds,
    errors_of,
    figure_of,
    lateness_words,
    length_words,
    limit_words,
    model_words,
    threshold_words,
)
from mcpace.report.words.quantities import Unit, clean, common_unit, count, duration, share
from mcpace.report.words.tokens import result_words

COLUMNS = ("mean", "p50", "p90", "p99", "p99.9", "max")
LEFT_OUT = ("p99.9", "mean", "p90")
"""Columns that a narrow terminal leaves out, in this order."""
READABLE_NAME = 24
"""Width of an operation's name below which a column is left out instead."""
GAP = 2
"""Width between two columns."""
RATE, GOOD = 9, 10
"""Widths of the columns with calls a second and good replies."""
BARS = "▁▂▃▄▅▆▇█"
APART = 0.05
"""Service times are printed where one differs from the latency by more than this share of the latency."""


def lines(run: Run, width: int) -> Iterator[Text]:
    """All load cases."""
    for case in run.cases:
        if case.load is not None:
            yield from _case_lines(case, width)


def _case_lines(case: Case, width: int) -> Iterator[Text]:
    load = case.load
    assert load is not None, "a case of load"
    yield blank()
    right = f"{model_words(load.model)} · {length_words(case)}"
    yield heading(clean(case.target, 60), width, right if len(right) < width - 12 else "")
    yield blank()
    yield from _table(case, width)
    yield from _error_lines(case, width)
    yield from _series(due_seconds(case), width)
    yield from _thresholds(case, width)
    yield from _total_lines(case, width)


@dataclass(frozen=True)
class _Layout:
    """Widths of the table's columns."""

    unit: Unit
    name: int
    columns: dict[str, int]
    """Width of each column, including the gap before it."""

    @classmethod
    def of(cls, operations: Sequence[LoadOperation], together: Latencies | None, width: int) -> _Layout:
        told = [one.latency_s for one in operations if one.latency_s]
        unit = common_unit(latencies.p50 for latencies in told)
        told += [one.service_s for one in operations if one.service_s]
        told += [together] if together else []
        columns = {
            name: GAP + max([cell_len(unit.figure(_figure_values(latencies)[at])) for latencies in told] + [len(name)])
            for at, name in enumerate(COLUMNS)
        }
        wanted = 2 + max([cell_len(clean(one.name, 60)) for one in operations] + [12])
        room = width - RATE - GOOD
        for name in LEFT_OUT:
            if room - sum(columns.values()) < min(wanted, READABLE_NAME):
                del columns[name]
        return cls(unit, max(min(wanted, room - sum(columns.values())), 1), columns)

    def header(self) -> str:
        return "".join(align_right(name, width) for name, width in self.columns.items())

    def figures(self, told: Latencies) -> Text:
        values = dict(zip(COLUMNS, _figure_values(told), strict=True))
        cells = (align_right(self.unit.figure(values[name]), width) for name, width in self.columns.items())
        return Text("".join(cells))


def _table(case: Case, width: int) -> Iterator[Text]:
    assert case.load is not None, "a case of load"
    calls = list((case.by_tool or {}).values())
    # A notification has no reply and so no latency.
    others = [one for one in case.load.others.values() if one.errors or (one.latency_s and one.latency_s.max)]
    layout = _Layout.of([*calls, *others], case.latency_s, width)
    header = fit_cell(f"  {layout.unit.name}", layout.name) + align_right("calls/s", RATE) + align_right("good", GOOD)
    yield Text(header + layout.header(), style="dim")
    for one in calls:
        yield from _rows(one, layout)
    if len(calls) > 1 and case.latency_s:
        together = Text(fit_cell("  all calls", layout.name), style="bold")
        together.append(align_right(figure_of(round(case.throughput_rps or 0.0)), RATE))
        together.append(align_right(f"{case.latency_s.count:,}", GOOD))
        yield together + layout.figures(case.latency_s)
    # A notification that never failed has no latency and needs no row.
    others = [one for one in others if one.errors or one.latency_s is None or one.latency_s.max > 0]
    if others:
        yield Text("  not counted as calls", style="dim")
    for one in others:
        yield from _rows(one, layout)


def _rows(one: LoadOperation, layout: _Layout) -> Iterator[Text]:
    line = Text(fit_cell(f"  {clean(one.name, 60)}", layout.name))
    line.append(align_right(figure_of(round(one.throughput_rps, 1 if one.throughput_rps < 100 else 0)), RATE))
    line.append(align_right(f"{one.ok:,}", GOOD))
    yield line + layout.figures(one.latency_s) if one.latency_s else line
    if one.latency_s and one.service_s and _differs(one.latency_s, one.service_s):
        sent = Text(fit_cell("    from its send", layout.name + RATE + GOOD), style="dim")
        yield sent + layout.figures(one.service_s)


def _differs(latency: Latencies, service: Latencies) -> bool:
    pairs = zip(_figure_values(latency), _figure_values(service), strict=True)
    return any(due - sent > APART * due for due, sent in pairs)


def _figure_values(told: Latencies) -> tuple[float, ...]:
    return (told.mean, told.p50, told.p90, told.p99, told.p999, told.max)


def _error_lines(case: Case, width: int) -> Iterator[Text]:
    assert case.load is not None, "a case of load"
    failed = [one for one in [*(case.by_tool or {}).values(), *case.load.others.values()] if one.errors]
    if not failed:
        return
    yield blank()
    yield Text("Errors", style="bold red")
    for one in failed:
        bad = one.count - one.ok
        text = f"{clean(one.name, 60)}: {errors_of(one)} ({share(bad, one.count)} of {one.count:,})"
        yield from wrap_paragraph(text, width, indent=2, hang=4)
        if one.first_error:
            yield from wrap_paragraph(f"first: {clean(one.first_error, 300)}", width, indent=4, hang=4, style="dim")


def _series(seconds: Sequence[LoadSecond], width: int) -> Iterator[Text]:
    """Successful replies, latency and errors over time, each as a row of bars. A bar stands for one second, or for
    several in a long load."""
    if len(seconds) < 2:
        return
    room = max(width - 40, 10)
    step = -(-len(seconds) // room)
    groups = [seconds[start : start + step] for start in range(0, len(seconds), step)]
    yield blank()
    every = "each second" if step == 1 else f"every {step} seconds"
    yield Text(f"Timeline ({every}, the warm-up dim)", style="bold")
    rates = [sum(second.ok for second in group) / len(group) for group in groups]
    slow = [max((second.p99_s or 0.0 for second in group), default=0.0) for group in groups]
    dim = [group[-1].warm_up for group in groups]
    least, most = min(rates), max(rates)
    yield _bars("calls/s", rates, dim, f"{figure_of(round(least))} to {figure_of(round(most))}")
    if any(slow):
        yield _bars("p99", slow, dim, f"up to {duration(max(slow))}")
    if any(second.errors for second in seconds):
        wrong = [float(sum(second.errors for second in group)) for group in groups]
        yield _bars("errors", wrong, dim, f"up to {figure_of(max(wrong))}")


def _bars(name: str, values: Sequence[float], dim: Sequence[bool], remark: str) -> Text:
    most = max(values) or 1.0
    line = Text(fit_cell(f"  {name}", 11))
    for value, faint in zip(values, dim, strict=True):
        bar = BARS[min(int(value / most * len(BARS)), len(BARS) - 1)] if value > 0 else " "
        line.append(bar, style="dim" if faint else "cyan")
    line.append(f"  {remark}", style="dim")
    return line


def _thresholds(case: Case, width: int) -> Iterator[Text]:
    assert case.load is not None, "a case of load"
    if not case.load.thresholds:
        return
    yield blank()
    yield Text("Thresholds", style="bold")
    longest = max(cell_len(clean(one.text, 40)) for one in case.load.thresholds)
    for one in case.load.thresholds:
        line = Text("  ").append(fit_cell("met" if one.met else "not met", 9), style="green" if one.met else "bold red")
        line.append(fit_cell(clean(one.text, 40), longest + 2))
        yield line.append(threshold_words(one))


def _total_lines(case: Case, width: int) -> Iterator[Text]:
    load = case.load
    assert load is not None, "a case of load"
    yield blank()
    due = f"{load.begun - load.late:,} of {load.intended:,} calls started without waiting for a free slot"
    rest = [
        f"{number:,} {word}"
        for number, word in (
            (load.dropped, "never started"),
            (load.late, "started late because no slot was free"),
            (load.unfinished, "still running when the load ended"),
        )
        if number
    ]
    yield from wrap_paragraph("; ".join([due, *rest]) + ".", width, indent=2, style="dim")
    found = load.connections
    opened = f"{count(found.opened, 'connection')} opened, {found.reused_requests:,} requests on kept ones"
    broken = [
        f"{number:,} {word}"
        for number, word in ((found.failed, "failed"), (found.closed_by_peer, "closed by the target"))
        if number
    ]
    yield from wrap_paragraph(", ".join([opened, *broken]) + ".", width, indent=2, style="dim")
    engine = load.engine
    yield from wrap_paragraph(
        f"Generator: {count(engine.threads, 'thread')}, {share(engine.busy, 1)} busy, "
        f"{duration(engine.cpu_s)} of processor time; {lateness_words(engine.late_p99_s)}.",
        width,
        indent=2,
        style="dim",
    )
    if results := result_words(case):
        yield from wrap_paragraph(f"{results}.", width, indent=2, style="dim")
    if limit := limit_words(case):
        yield from wrap_paragraph(f"{limit[0].upper()}{limit[1:]}.", width, indent=2, style="bold yellow")
