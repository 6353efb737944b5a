"""A comparison of servers for the page: each server with its rounds, its tools and its program."""

from __future__ import annotations

from collections.abc import Iterator

from mcpace.report.model.run import Case, Run
from mcpace.report.model.servers import Floor
from mcpace.report.page.load import operations, percentiles
from mcpace.report.page.model import RoundShown, ServerShown, ServersShown
from mcpace.report.words.findings import title_for
from mcpace.report.words.quantities import clean
from mcpace.report.words.servers import conditions, name, ratio_words

FLOOR = "floor: a server that does nothing"


def comparison_of(run: Run) -> ServersShown | None:
    """The servers of a run; ``None`` for other runs."""
    common = run.servers
    if common is None:
        return None
    return ServersShown(
        workload=clean(common.workload, 40),
        open=common.model.get("kind") == "open",
        servers=[_server_view(case) for case in run.cases],
        floor=_floor_view(common.floor),
        conditions=list(conditions(run)),
    )


def _floor_view(floor: Floor | None) -> ServerShown | None:
    if floor is None or floor.error:
        return None
    return ServerShown(
        name=FLOOR, rate=floor.throughput_rps, latency=percentiles(floor.latency_s), cpu_s=floor.cpu_s_per_call
    )


def _server_view(case: Case) -> ServerShown:
    facts = case.server
    return ServerShown(
        name=name(case),
        rate=case.throughput_rps,
        ratio=ratio_words(facts.ratio) if facts else "",
        failed=case.errors or 0,
        rounds=[
            RoundShown(rate=one.throughput_rps, p50_s=one.p50_s, p99_s=one.p99_s, cpu_s=one.cpu_s_per_call)
            for one in (facts.rounds if facts else [])
        ],
        latency=percentiles(case.latency_s),
        cpu_s=facts.cpu_s_per_call if facts else None,
        rss_bytes=case.rss_bytes,
        operations=operations(case.by_tool),
        remarks=list(_remarks(case)),
        program=_program_words(case),
    )


def _remarks(case: Case) -> Iterator[str]:
    if case.throughput_rps is None:
        yield f"unsupported: {clean(case.unsupported)}" if case.unsupported else clean(case.error or "not measured")
        return
    for finding in case.findings:
        yield title_for(finding.code)
    if case.saturated:
        yield "the load generator was the limit"
    if case.error:
        yield f"ended early: {clean(case.error)}"


def _program_words(case: Case) -> str:
    facts = case.server
    if facts is None or not facts.sdk_version:
        return ""
    told = [f"reports SDK {clean(facts.sdk_version, 40)}", f"revision {clean(facts.revision, 20)}"]
    told += [f"{facts.workers} serving {'process' if facts.workers == 1 else 'processes'}"]
    told += [clean(note, 200).rstrip(".") for note in facts.notes]
    return "; ".join(told)
