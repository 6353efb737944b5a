"""A comparison of servers on the page: a table of all, one of each tool, and exactly what ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mcpace.report.quantities import clean, duration, size
from mcpace.report.run import Case, Run
from mcpace.report.run_load import Latencies
from mcpace.report.words_servers import conditions, name, ratio_words

COLUMNS = ("calls/s", "against the first", "p50", "p90", "p99", "p99.9", "failed", "CPU/call", "memory")
TOOL_COLUMNS = ("calls/s", "p50", "p90", "p99", "p99.9", "failed")


@dataclass(frozen=True)
class Row:
    """One server."""

    name: str
    figures: list[str]
    """A figure a column; none where it could not be measured."""
    remark: str = ""
    """Why there are no figures, or no more of them."""


@dataclass(frozen=True)
class Table:
    """All servers in one respect."""

    title: str
    columns: tuple[str, ...]
    rows: list[Row]


@dataclass(frozen=True)
class Compared:
    """A comparison."""

    tables: list[Table]
    sentences: list[str]
    programs: list[tuple[str, str]]


def compared(run: Run) -> Compared | None:
    """``None`` for other runs."""
    if run.servers is None:
        return None
    return Compared(list(_tables(run)), list(conditions(run)), list(_programs(run)))


def _tables(run: Run) -> Iterator[Table]:
    assert run.servers is not None, "a comparison of servers"
    rows = [_row(case) for case in run.cases]
    floor = run.servers.floor
    if floor is not None and not floor.error:
        per_call = "" if floor.cpu_s_per_call is None else duration(floor.cpu_s_per_call)
        figures = [f"{floor.throughput_rps:,.0f}", "", *_percentiles(floor.latency_s), "", per_call, ""]
        rows.append(Row("floor: a server that does nothing", figures))
    yield Table(f"Workload {clean(run.servers.workload, 40)}", COLUMNS, rows)
    tools = list(dict.fromkeys(tool for case in run.cases for tool in case.by_tool or {}))
    for tool in tools if len(tools) > 1 else []:
        yield Table(clean(tool, 60), TOOL_COLUMNS, [_tool_row(case, tool) for case in run.cases if case.by_tool])


def _row(case: Case) -> Row:
    if case.throughput_rps is None:
        reason = f"unsupported: {clean(case.unsupported)}" if case.unsupported else clean(case.error or "not measured")
        return Row(name(case), [], reason)
    server = case.server
    per_call = server.cpu_s_per_call if server else None
    figures = [
        f"{case.throughput_rps:,.0f}",
        ratio_words(server.ratio) if server else "",
        *_percentiles(case.latency_s),
        f"{case.errors or 0:,}",
        "" if per_call is None else duration(per_call),
        size(case.rss_bytes) if case.rss_bytes else "",
    ]
    remarks = [finding.code for finding in case.findings]
    remarks += ["the load generator was the limit"] if case.saturated else []
    remarks += [f"ended early: {clean(case.error)}"] if case.error else []
    return Row(name(case), figures, "; ".join(remarks))


def _tool_row(case: Case, tool: str) -> Row:
    one = (case.by_tool or {}).get(tool)
    if one is None:
        return Row(name(case), [], "not called")
    figures = [f"{one.throughput_rps:,.0f}", *_percentiles(one.latency_s), f"{one.count - one.ok:,}"]
    return Row(name(case), figures, f"the first that failed: {clean(one.first_error)}" if one.first_error else "")


def _percentiles(told: Latencies | None) -> list[str]:
    values: list[Callable[[Latencies], float]] = [
        lambda one: one.p50,
        lambda one: one.p90,
        lambda one: one.p99,
        lambda one: one.p999,
    ]
    return ["" if told is None else duration(value(told)) for value in values]


def _programs(run: Run) -> Iterator[tuple[str, str]]:
    for case in run.cases:
        facts = case.server
        if facts is not None and facts.sdk_version:
            told = [f"SDK {clean(facts.sdk_version, 40)} by its own word", f"revision {clean(facts.revision, 20)}"]
            told += [f"{facts.workers} serving {'process' if facts.workers == 1 else 'processes'}"]
            told += [clean(note, 200).rstrip(".") for note in facts.notes]
            yield name(case), "; ".join(told)
