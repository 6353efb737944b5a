"""Conversion of an engine's outcome to a case of the Run."""

from __future__ import annotations

from typing import Any

from mcpace.lab.load import delayed_ack, generator_limited, merge
from mcpace.lab.load.engine_outcome import OperationOutcome, Outcome, Second
from mcpace.lab.load.histogram import combine_histograms, histogram_latencies, merge_buckets
from mcpace.lab.load.plan import HttpTarget, LoadPlan
from mcpace.report.model.load import LoadConnections, LoadEngine, LoadFacts, LoadOperation, LoadSecond
from mcpace.report.model.run import Case, Subject

CALLS = ("call", "raw")
"""Kinds of operations that make up the load. Other kinds are reported separately, unless the load has only those."""
SHOWN_ERROR = 300


def load_case(subject: Subject, target: str, plan: LoadPlan, outcome: Outcome) -> Case:
    """Converts the measurements after the warm-up to a case."""
    # A replay may have several operations for one tool.
    ended = merge.merge_operations(outcome.operations)
    asked = {operation.name for operation in plan.operations}
    loaded = [one for one in ended if one.name in asked and one.kind in CALLS]
    loaded = loaded or [one for one in ended if one.name in asked]
    calls = {one.name: _load_operation(one, outcome.measured_s) for one in loaded}
    others = [one for one in ended if one.name not in calls and one.count]
    case = Case(
        subject=subject,
        target=target,
        operation="call",
        tool=next(iter(calls)) if len(calls) == 1 else None,
        error=outcome.failure,
        throughput_rps=sum(one.throughput_rps for one in calls.values()),
        errors=sum(one.count - one.ok for one in calls.values()),
        latency_s=histogram_latencies(combine_histograms(one.latency for one in loaded)),
        service_s=histogram_latencies(combine_histograms(one.service for one in loaded)),
        by_tool=calls,
        saturated=outcome.engine.saturated,
        seconds=[load_second(one) for one in outcome.seconds],
        load=LoadFacts(
            ended=outcome.ended,
            failure=outcome.failure,
            model=_model_fields(plan),
            elapsed_s=outcome.elapsed_s,
            measured_s=outcome.measured_s,
            warm_up_s=plan.warm_up_s,
            intended=outcome.intended,
            begun=outcome.begun,
            dropped=outcome.dropped,
            late=outcome.late,
            unfinished=outcome.unfinished,
            acknowledgement_share=_acknowledgement_share(plan, outcome, loaded),
            others={one.name: _load_operation(one, outcome.measured_s) for one in others},
            connections=LoadConnections(**outcome.connections.model_dump()),
            engine=LoadEngine(**outcome.engine.model_dump()),
        ),
    )
    limited = generator_limited.limited_finding(case)
    case.findings = [limited] if limited else []
    return case


def _acknowledgement_share(plan: LoadPlan, outcome: Outcome, loaded: list[OperationOutcome]) -> float:
    found = outcome.connections
    requests = found.opened + found.reused_requests
    if not isinstance(plan.target, HttpTarget) or found.reused_requests <= requests / 2:
        return 0.0
    share = delayed_ack.excess_share(merge_buckets([one.service.buckets for one in loaded]))
    return share if share >= delayed_ack.SUSPECT_SHARE else 0.0


def load_second(outcome: Second) -> LoadSecond:
    """Converts one second of the time series."""
    latency = outcome.latency.model_dump() if outcome.latency and outcome.ok else {}
    return LoadSecond(**outcome.model_dump(exclude={"latency"}), **latency)


def _load_operation(outcome: OperationOutcome, measured_s: float) -> LoadOperation:
    return LoadOperation(
        name=outcome.name,
        kind=outcome.kind,
        count=outcome.count,
        ok=outcome.ok,
        errors=outcome.errors,
        first_error=outcome.first_error and outcome.first_error[:SHOWN_ERROR],
        throughput_rps=outcome.ok / measured_s if measured_s > 0 else 0.0,
        latency_s=histogram_latencies(outcome.latency),
        service_s=histogram_latencies(outcome.service),
        failed_s=histogram_latencies(outcome.failed),
        latency_buckets=outcome.latency.buckets,
        sent_bytes=outcome.sent_bytes,
        received_bytes=outcome.received_bytes,
        json_replies=outcome.json_replies,
        sse_replies=outcome.sse_replies,
    )


def _model_fields(plan: LoadPlan) -> dict[str, Any]:
    model = {"kind": plan.model.kind, **vars(plan.model)}
    if plan.stages:
        model["stages"] = [vars(stage) for stage in plan.stages]
    return model
