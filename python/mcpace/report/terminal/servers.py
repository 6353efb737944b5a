"""A comparison of servers on a terminal: a row a server, a table of tools where there are several, exactly what ran."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from mcpace.report.model.load import Latencies
from mcpace.report.model.run import Case, Run
from mcpace.report.terminal.lines import align_right, blank, fit_cell, heading, wrap_paragraph
from mcpace.report.words.quantities import Unit, clean, common_unit, duration, size
from mcpace.report.words.servers import conditions, model_words, name, ratio_words

LONGEST_SUBJECT = 30
FIGURE = 8
COLUMNS = ("p50", "p90", "p99", "p99.9")
FEWER = ("p50", "p99")
WIDE = 104
"""Width of a terminal with room for all percentiles and the intervals of the ratios."""


def lines(run: Run, width: int) -> Iterator[Text]:
    """The servers; no lines where none was requested."""
    if run.servers is None or not run.cases:
        return
    yield blank()
    yield heading(f"workload {clean(run.servers.workload, 30)}", width, model_words(run.servers).partition(",")[0])
    yield blank()
    yield from _table(run, width)
    yield from _tool_tables(run, width)
    yield from _error_lines(run, width)
    yield blank()
    yield heading("What ran", width)
    for sentence in conditions(run):
        yield from wrap_paragraph(sentence, width, hang=2)
    yield from _programs(run, width)


def _table(run: Run, width: int) -> Iterator[Text]:
    floor = run.servers.floor if run.servers else None
    timed = [case.latency_s for case in run.cases if case.latency_s]
    unit, subject, columns = common_unit(told.p50 for told in timed), _subject_width(run), _columns(width)
    header = fit_cell(f"  {unit.name}", subject) + align_right("calls/s", 9)
    header += "".join(align_right(column, FIGURE) for column in columns)
    header += align_right("CPU/call", 10) + align_right("memory", 10)
    against = "ratio" if width < WIDE else f"against {clean(run.cases[0].subject.label(), 20)}"
    yield Text(f"{header}  {against}", style="dim")
    for case in run.cases:
        yield from _row(case, unit, subject, width)
    if floor is not None and not floor.error:
        line = Text(fit_cell("  (floor)", subject) + align_right(f"{floor.throughput_rps:,.0f}", 9), style="dim")
        if floor.latency_s:
            line.append(_figures(floor.latency_s, unit, columns))
        if floor.cpu_s_per_call is not None:
            line.append(align_right(duration(floor.cpu_s_per_call), 10))
        yield line


def _row(case: Case, unit: Unit, subject: int, width: int) -> Iterator[Text]:
    line, columns = Text(fit_cell(f"  {name(case)}", subject)), _columns(width)
    if case.throughput_rps is None:
        reason = clean(case.unsupported or case.error or "")
        state = "unsupported" if case.unsupported else "failed" if case.error else "not measured"
        style = "dim" if case.unsupported else "yellow"
        text = f"{state}: {reason}" if reason else state
        for number, part in enumerate(wrap_paragraph(text, width, indent=subject + 2, style=style)):
            yield part if number else line + part[subject:]
        return
    line.append(align_right(f"{case.throughput_rps:,.0f}", 9), style="bold")
    line.append(_figures(case.latency_s, unit, columns) if case.latency_s else " " * FIGURE * len(columns))
    per_call = case.server.cpu_s_per_call if case.server else None
    line.append(align_right(duration(per_call) if per_call is not None else "", 10))
    line.append(align_right(size(case.rss_bytes) if case.rss_bytes else "", 10))
    ratio = case.server.ratio if case.server else None
    line.append("  " + ratio_words(ratio, interval=width >= WIDE))
    yield line
    remarks = [finding.code for finding in case.findings] + (["generator-limited"] if case.saturated else [])
    if remarks:
        yield from wrap_paragraph(", ".join(remarks), width, indent=4, style="bold red")
    if case.error:
        yield from wrap_paragraph(f"ended early: {clean(case.error)}", width, indent=4, hang=6, style="yellow")


def _tool_tables(run: Run, width: int) -> Iterator[Text]:
    """Percentiles by tool, where there are several tools."""
    tools = list(dict.fromkeys(tool for case in run.cases for tool in case.by_tool or {}))
    if len(tools) < 2:
        return
    subject = _subject_width(run)
    for tool in tools:
        own = [(case, (case.by_tool or {})[tool]) for case in run.cases if tool in (case.by_tool or {})]
        unit = common_unit(one.latency_s.p50 for _, one in own if one.latency_s)
        yield blank()
        yield Text(
            fit_cell(clean(tool, subject), subject)
            + align_right("calls/s", 9)
            + "".join(align_right(column, FIGURE) for column in COLUMNS)
            + align_right(unit.name, 5),
            style="dim",
        )
        for case, one in own:
            line = Text(fit_cell(f"  {name(case)}", subject) + align_right(f"{one.throughput_rps:,.0f}", 9))
            yield line + _figures(one.latency_s, unit, COLUMNS) if one.latency_s else line


def _error_lines(run: Run, width: int) -> Iterator[Text]:
    failed = [(case, one) for case in run.cases for one in (case.by_tool or {}).values() if one.errors]
    if not failed:
        return
    yield blank()
    yield Text("Errors", style="bold red")
    for case, one in failed:
        kinds = ", ".join(f"{clean(kind, 30)} {number:,}" for kind, number in one.errors.items())
        yield from wrap_paragraph(
            f"{name(case)}, {clean(one.name, 40)}: {kinds} of {one.count:,}", width, indent=2, hang=4
        )
        if one.first_error:
            yield from wrap_paragraph(f"first: {clean(one.first_error, 300)}", width, indent=4, hang=4, style="dim")


def _programs(run: Run, width: int) -> Iterator[Text]:
    for case in run.cases:
        facts = case.server
        if facts is None or not facts.sdk_version:
            continue
        told = [f"reports SDK {clean(facts.sdk_version, 40)}"]
        if facts.revision and run.servers and facts.revision != run.servers.revision:
            told.append(f"speaks {clean(facts.revision, 20)} only")
        told.append(f"{facts.workers} serving {'process' if facts.workers == 1 else 'processes'}")
        if facts.rss_idle_bytes:
            told.append(f"{size(facts.rss_idle_bytes)} before the load")
        if facts.checked:
            told.append(f"{len(facts.checked)} answers checked")
        text = f"{name(case)}: {', '.join(told)}."
        notes = " ".join(clean(note, 200).rstrip(".") + "." for note in facts.notes)
        yield from wrap_paragraph(f"{text} {notes}".strip(), width, hang=2, style="dim")


def _subject_width(run: Run) -> int:
    return min(max(cell_len(name(case)) for case in run.cases), LONGEST_SUBJECT) + 3


def _columns(width: int) -> tuple[str, ...]:
    return COLUMNS if width >= WIDE else FEWER


def _figures(told: Latencies, unit: Unit, columns: tuple[str, ...]) -> str:
    values = dict(zip(COLUMNS, (told.p50, told.p90, told.p99, told.p999), strict=True))
    return "".join(align_right(unit.figure(values[column]), FIGURE) for column in columns)
