"""Folds a server's rounds into a case of the Run. Pure: outcomes in, models out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mcpace.lab import load_fold
from mcpace.lab.load_fold import CALLS
from mcpace.lab.load_histogram import merged as merged_buckets
from mcpace.lab.load_histogram import together
from mcpace.lab.load_plan import (
    Connections,
    Engine,
    Histogram,
    OperationOutcome,
    Outcome,
    Plan,
    Second,
)
from mcpace.lab.rounds import paired_ratio
from mcpace.lab.stand import Round, Stand
from mcpace.report.run import Case
from mcpace.report.run_load import Latencies
from mcpace.report.run_servers import Floor, RateRatio, ServerRound

NOTHING = Outcome(
    ended="done", started_ns=0, elapsed_s=0, measured_s=0, intended=0, begun=0, dropped=0, late=0, unfinished=0,
    operations=[], connections=Connections(), seconds=[],
    engine=Engine(threads=0, cpu_s=0, busy=0, late_p99_s=0, saturated=False),
)  # fmt: skip


SEVERITY = ("done", "stopped", "failed")


def case(stand: Stand, target: str, plan: Plan) -> Case:
    """Everything that one server did, over all its rounds."""
    facts = stand.facts
    facts.rounds = [_round(one) for one in stand.rounds]
    if stand.rounds:
        result = load_fold.case(stand.subject, target, plan, merged(one.outcome for one in stand.rounds))
        facts.cpu_s_per_call = _per_call(stand.rounds)
        if facts.cpu_s_per_call is not None:
            result.cpu_s = facts.cpu_s_per_call * sum(one.count for one in (result.by_tool or {}).values())
        result.rss_bytes = max((one.rss_bytes for one in stand.rounds if one.rss_bytes), default=None)
    else:
        result = Case(subject=stand.subject, target=target, operation="call")
    result.error = stand.error or result.error
    result.unsupported = stand.unsupported
    result.server = facts
    return result


def ratio(case: Case, first: Case) -> RateRatio | None:
    """A server's throughput over the first one's; ``None`` where no round has both."""
    assert case.server is not None, "a case of servers"
    assert first.server is not None, "a case of servers"
    ours, theirs = ([one.throughput_rps for one in side.server.rounds] for side in (case, first) if side.server)
    found = paired_ratio(ours, theirs)
    if found is None:
        return None
    value, low, high, rounds = found
    return RateRatio(against=first.subject.label(), ratio=value, low=low, high=high, rounds=rounds)


def floor(stand: Stand, plan: Plan) -> Floor:
    """What the load was on the server that does nothing."""
    told = case(stand, "floor", plan)
    if told.load is None:
        return Floor(throughput_rps=0, engine_busy=0, saturated=False, error=told.error or "it had no round")
    engine, rate = told.load.engine, told.throughput_rps or 0.0
    closed = plan.model.kind == "closed"
    return Floor(
        throughput_rps=rate,
        latency_s=told.latency_s,
        cpu_s_per_call=stand.facts.cpu_s_per_call,
        engine_busy=engine.busy,
        saturated=engine.saturated,
        # At a given rate it would say what was asked for, not what could be done.
        ceiling_rps=rate / engine.busy if closed and engine.busy > 0 else None,
        error=told.error,
    )


def merged(outcomes: Iterable[Outcome]) -> Outcome:
    """Several loads alike as one: counts and times are added, percentiles made of the histograms together."""
    parts = list(outcomes)
    if not parts:
        return NOTHING
    worst = max(parts, key=lambda one: SEVERITY.index(one.ended))
    return Outcome(
        ended=worst.ended,
        failure=next((one.failure for one in parts if one.failure), None),
        started_ns=parts[0].started_ns,
        elapsed_s=sum(one.elapsed_s for one in parts),
        measured_s=sum(one.measured_s for one in parts),
        intended=sum(one.intended for one in parts),
        begun=sum(one.begun for one in parts),
        dropped=sum(one.dropped for one in parts),
        late=sum(one.late for one in parts),
        unfinished=sum(one.unfinished for one in parts),
        operations=_operations(parts),
        connections=Connections(
            opened=sum(one.connections.opened for one in parts),
            reused_requests=sum(one.connections.reused_requests for one in parts),
            failed=sum(one.connections.failed for one in parts),
            closed_by_peer=sum(one.connections.closed_by_peer for one in parts),
        ),
        seconds=_seconds(parts),
        engine=_engine(parts),
    )


def _round(one: Round) -> ServerRound:
    calls = [told for told in one.outcome.operations if told.kind in CALLS]
    latency = _together([told.latency for told in calls])
    ok = sum(told.ok for told in calls)
    return ServerRound(
        throughput_rps=ok / one.outcome.measured_s if one.outcome.measured_s > 0 else 0.0,
        errors=sum(told.count - told.ok for told in calls),
        p50_s=latency.p50_s if latency.count else None,
        p99_s=latency.p99_s if latency.count else None,
        cpu_s_per_call=one.cpu_s_per_call,
        rss_bytes=one.rss_bytes,
        engine_busy=one.outcome.engine.busy,
        saturated=one.outcome.engine.saturated,
    )


def _per_call(rounds: Sequence[Round]) -> float | None:
    known = [one for one in rounds if one.cpu_s_per_call is not None]
    calls = sum(one.calls_in_all for one in known)
    return sum(one.cpu_s or 0.0 for one in known) / calls if calls else None


def _operations(parts: Sequence[Outcome]) -> list[OperationOutcome]:
    by_name: dict[str, list[OperationOutcome]] = {}
    for part in parts:
        for told in part.operations:
            by_name.setdefault(told.name, []).append(told)
    return [_operation(own) for own in by_name.values()]


def _operation(own: Sequence[OperationOutcome]) -> OperationOutcome:
    errors: Counter[str] = Counter()
    for one in own:
        errors.update(one.errors)
    return OperationOutcome(
        name=own[0].name,
        kind=own[0].kind,
        count=sum(one.count for one in own),
        ok=sum(one.ok for one in own),
        errors=dict(errors),
        first_error=next((one.first_error for one in own if one.first_error), None),
        latency=_together([one.latency for one in own]),
        service=_together([one.service for one in own]),
        failed=_together([one.failed for one in own]),
        sent_bytes=sum(one.sent_bytes for one in own),
        received_bytes=sum(one.received_bytes for one in own),
        json_replies=sum(one.json_replies for one in own),
        sse_replies=sum(one.sse_replies for one in own),
    )


def _together(histograms: Sequence[Histogram]) -> Histogram:
    known = [one for one in histograms if one.count]
    if not known:
        return Histogram()
    told = together([(_figures(one), one.buckets) for one in known])
    assert told is not None, "there are samples"
    figures = {f"{name}_s": value for name, value in told.model_dump(exclude={"count"}).items()}
    return Histogram(count=told.count, buckets=merged_buckets(one.buckets for one in known), **figures)


def _figures(histogram: Histogram) -> Latencies:
    members = histogram.model_dump(exclude={"buckets"})
    return Latencies(**{name.removesuffix("_s"): value for name, value in members.items()})


def _seconds(parts: Sequence[Outcome]) -> list[Second]:
    """One after another: what lies between two rounds is left out."""
    seconds, start = [], 0.0
    for part in parts:
        seconds += [second.model_copy(update={"at_s": start + second.at_s}) for second in part.seconds]
        start += part.elapsed_s
    return seconds


def _engine(parts: Sequence[Outcome]) -> Engine:
    whole = sum(one.elapsed_s for one in parts)
    busy = sum(one.engine.busy * one.elapsed_s for one in parts) / whole if whole > 0 else 0.0
    return Engine(
        threads=max(one.engine.threads for one in parts),
        cpu_s=sum(one.engine.cpu_s for one in parts),
        busy=busy,
        late_p99_s=max(one.engine.late_p99_s for one in parts),
        saturated=any(one.engine.saturated for one in parts),
        reason=next((one.engine.reason for one in parts if one.engine.reason), None),
    )
