"""An engine's outcome as a case of the Run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from mcpace.lab.load_histogram import merged, together
from mcpace.lab.load_plan import Histogram, OperationOutcome, Outcome, Plan, Second
from mcpace.report.run import Case, Subject
from mcpace.report.run_load import (
    Latencies,
    LoadConnections,
    LoadEngine,
    LoadFacts,
    LoadOperation,
    LoadSecond,
)

CALLS = ("call", "raw")
"""Kinds of operations that are the load itself; the rest is counted apart, unless there is nothing else."""
SHOWN_ERROR = 300


def case(subject: Subject, target: str, plan: Plan, outcome: Outcome) -> Case:
    """What was measured, after the warm-up."""
    named: dict[str, list[OperationOutcome]] = {}
    for one in outcome.operations:
        # A replay may make one tool's calls in several ways.
        named.setdefault(one.name, []).append(one)
    told = {name: _operation(parts, outcome.measured_s) for name, parts in named.items()}
    asked = {operation.name for operation in plan.operations}
    calls = {name: one for name, one in told.items() if name in asked and one.kind in CALLS}
    calls = calls or {name: one for name, one in told.items() if name in asked}
    loaded = [one for one in outcome.operations if one.name in calls]
    seconds = [second(one) for one in outcome.seconds]
    return Case(
        subject=subject,
        target=target,
        operation="call",
        tool=next(iter(calls)) if len(calls) == 1 else None,
        error=outcome.failure,
        throughput_rps=sum(one.throughput_rps for one in calls.values()),
        errors=sum(one.count - one.ok for one in calls.values()),
        latency_s=_latencies([one.latency for one in loaded]),
        service_s=_latencies([one.service for one in loaded]),
        by_tool=calls,
        saturated=outcome.engine.saturated,
        seconds=seconds,
        load=LoadFacts(
            ended=outcome.ended,
            failure=outcome.failure,
            model=_model(plan),
            elapsed_s=outcome.elapsed_s,
            measured_s=outcome.measured_s,
            warm_up_s=plan.warm_up_s,
            intended=outcome.intended,
            begun=outcome.begun,
            dropped=outcome.dropped,
            late=outcome.late,
            unfinished=outcome.unfinished,
            others={name: one for name, one in told.items() if name not in calls and one.count},
            connections=LoadConnections(**outcome.connections.model_dump()),
            engine=LoadEngine(**outcome.engine.model_dump()),
        ),
    )


def second(told: Second) -> LoadSecond:
    """One second of the time series."""
    latency = told.latency.model_dump() if told.latency and told.ok else {}
    return LoadSecond(**told.model_dump(exclude={"latency"}), **latency)


def _operation(parts: Sequence[OperationOutcome], measured_s: float) -> LoadOperation:
    first = parts[0]
    errors: Counter[str] = Counter()
    for part in parts:
        errors.update({kind: count for kind, count in part.errors.items() if count})
    said = next((part.first_error for part in parts if part.first_error), None)
    ok = sum(part.ok for part in parts)
    return LoadOperation(
        name=first.name,
        kind=first.kind,
        count=sum(part.count for part in parts),
        ok=ok,
        errors=dict(errors),
        first_error=said and said[:SHOWN_ERROR],
        throughput_rps=ok / measured_s if measured_s > 0 else 0.0,
        latency_s=_latencies([part.latency for part in parts]),
        service_s=_latencies([part.service for part in parts]),
        failed_s=_latencies([part.failed for part in parts]),
        latency_buckets=merged(part.latency.buckets for part in parts),
        sent_bytes=sum(part.sent_bytes for part in parts),
        received_bytes=sum(part.received_bytes for part in parts),
        json_replies=sum(part.json_replies for part in parts),
        sse_replies=sum(part.sse_replies for part in parts),
    )


def _latencies(histograms: Iterable[Histogram]) -> Latencies | None:
    return together([(_figures(histogram), histogram.buckets) for histogram in histograms])


def _figures(histogram: Histogram) -> Latencies:
    members = histogram.model_dump(exclude={"buckets"})
    return Latencies(**{name.removesuffix("_s"): value for name, value in members.items()})


def _model(plan: Plan) -> dict[str, Any]:
    model = plan.model.model_dump()
    if plan.stages:
        model["stages"] = [stage.model_dump() for stage in plan.stages]
    return model
