"""Conversion of a server's rounds to a case of the Run."""

from __future__ import annotations

from collections.abc import Sequence

from mcpace.lab.clients.trials_to_cases import mean_ledger
from mcpace.lab.load import merge, outcome_to_case
from mcpace.lab.load.engine_outcome import Outcome
from mcpace.lab.load.histogram import combine_histograms
from mcpace.lab.load.outcome_to_case import CALLS
from mcpace.lab.load.plan import LoadPlan
from mcpace.lab.servers.server_under_test import Round, ServerUnderTest
from mcpace.lab.statistics.paired_ratio import paired_ratio
from mcpace.report.model.run import Case
from mcpace.report.model.servers import Floor, RateRatio, ServerRound


def server_case(server: ServerUnderTest, target: str, plan: LoadPlan) -> Case:
    """Converts the results of one server, over all its rounds."""
    facts = server.facts
    facts.rounds = [_server_round(one) for one in server.rounds]
    if server.rounds:
        result = outcome_to_case.load_case(
            server.subject, target, plan, merge.merge_outcomes(one.outcome for one in server.rounds)
        )
        facts.cpu_s_per_call = _per_call(server.rounds)
        if facts.cpu_s_per_call is not None:
            result.cpu_s = facts.cpu_s_per_call * sum(one.count for one in (result.by_tool or {}).values())
        if server.layer_ledgers and result.load is not None:
            result.ledger_s, result.load.beside = (
                mean_ledger(server.layer_ledgers),
                sum(one["calls"] for one in server.layer_ledgers),
            )
        result.rss_bytes = max((one.rss_bytes for one in server.rounds if one.rss_bytes), default=None)
    else:
        result = Case(subject=server.subject, target=target, operation="call")
    result.error = server.error or result.error
    result.unsupported = server.unsupported
    result.server = facts
    return result


def throughput_ratio(case: Case, first: Case) -> RateRatio | None:
    """Ratio of a server's throughput to that of the first server; ``None`` where no round has both."""
    assert case.server is not None, "a case of servers"
    assert first.server is not None, "a case of servers"
    ours, theirs = ([one.throughput_rps for one in side.server.rounds] for side in (case, first) if side.server)
    found = paired_ratio(ours, theirs)
    if found is None:
        return None
    value, low, high, rounds = found
    return RateRatio(against=first.subject.label(), ratio=value, low=low, high=high, rounds=rounds)


def null_floor(server: ServerUnderTest, plan: LoadPlan) -> Floor:
    """Results of the load on the null server."""
    result = server_case(server, "floor", plan)
    if result.load is None:
        return Floor(throughput_rps=0, engine_busy=0, saturated=False, error=result.error or "it had no round")
    engine, rate = result.load.engine, result.throughput_rps or 0.0
    closed = plan.model.kind == "closed"
    return Floor(
        throughput_rps=rate,
        latency_s=result.latency_s,
        cpu_s_per_call=server.facts.cpu_s_per_call,
        engine_busy=engine.busy,
        saturated=engine.saturated,
        # An open load would give its requested rate, not the highest possible one.
        ceiling_rps=rate / engine.busy if closed and engine.busy > 0 else None,
        error=result.error,
    )


def _server_round(measured: Round) -> ServerRound:
    calls = [operation for operation in measured.outcome.operations if operation.kind in CALLS]
    latency = combine_histograms(operation.latency for operation in calls)
    return ServerRound(
        throughput_rps=throughput(measured.outcome),
        errors=sum(operation.count - operation.ok for operation in calls),
        p50_s=latency.p50_s if latency.count else None,
        p99_s=latency.p99_s if latency.count else None,
        cpu_s_per_call=measured.cpu_s_per_call,
        rss_bytes=measured.rss_bytes,
        engine_busy=measured.outcome.engine.busy,
        saturated=measured.outcome.engine.saturated,
    )


def throughput(outcome: Outcome) -> float:
    """Successful calls a second."""
    ok = sum(operation.ok for operation in outcome.operations if operation.kind in CALLS)
    return ok / outcome.measured_s if outcome.measured_s > 0 else 0.0


def _per_call(rounds: Sequence[Round]) -> float | None:
    known = [one for one in rounds if one.cpu_s_per_call is not None]
    calls = sum(one.calls_in_all for one in known)
    return sum(one.cpu_s or 0.0 for one in known) / calls if calls else None
