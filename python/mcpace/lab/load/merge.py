"""Merges outcomes of loads: adds counts and times, and computes percentiles from the merged histograms.

Used for operations of one tool within a load, for the rounds of a server, and for the workers of one load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mcpace.lab.load.engine_outcome import Connections, Engine, OperationOutcome, Outcome, Second
from mcpace.lab.load.histogram import combine_histograms

NOTHING = Outcome(
    ended="done", started_ns=0, elapsed_s=0, measured_s=0, intended=0, begun=0, dropped=0, late=0, unfinished=0,
    operations=[], connections=Connections(), seconds=[],
    engine=Engine(threads=0, cpu_s=0, busy=0, late_p99_s=0, saturated=False),
)  # fmt: skip

SEVERITY = ("done", "stopped", "failed")


def merge_outcomes(several: Iterable[Outcome]) -> Outcome:
    """Merges the outcomes of equal loads that ran one after another."""
    parts = list(several)
    if not parts:
        return NOTHING
    return _merge_counts(parts).model_copy(
        update={
            "elapsed_s": sum(one.elapsed_s for one in parts),
            "measured_s": sum(one.measured_s for one in parts),
            "seconds": _concatenate_seconds(parts),
            "engine": _merge_engines(parts),
        }
    )


def merge_parallel_outcomes(several: Iterable[Outcome], seconds: list[Second]) -> Outcome:
    """Merges the outcomes of the parts of one load, which ran at the same time. ``seconds`` are those of the load."""
    parts = list(several)
    if not parts:
        return NOTHING.model_copy(update={"seconds": seconds})
    busiest = max(parts, key=lambda one: one.engine.busy)
    engine = _merge_engines(parts).model_copy(
        update={"threads": sum(one.engine.threads for one in parts), "busy": busiest.engine.busy}
    )
    return _merge_counts(parts).model_copy(update={"seconds": seconds, "engine": engine})


def _merge_counts(parts: Sequence[Outcome]) -> Outcome:
    """Adds the counts. Times are those of the longest part; the first part's seconds and engine are left in place."""
    worst = max(parts, key=lambda one: SEVERITY.index(one.ended))
    return Outcome(
        ended=worst.ended,
        failure=next((one.failure for one in parts if one.failure), None),
        started_ns=parts[0].started_ns,
        elapsed_s=max(one.elapsed_s for one in parts),
        measured_s=max(one.measured_s for one in parts),
        intended=sum(one.intended for one in parts),
        begun=sum(one.begun for one in parts),
        dropped=sum(one.dropped for one in parts),
        late=sum(one.late for one in parts),
        unfinished=sum(one.unfinished for one in parts),
        operations=merge_operations(one for part in parts for one in part.operations),
        connections=Connections(
            opened=sum(one.connections.opened for one in parts),
            reused_requests=sum(one.connections.reused_requests for one in parts),
            failed=sum(one.connections.failed for one in parts),
            closed_by_peer=sum(one.connections.closed_by_peer for one in parts),
        ),
        seconds=parts[0].seconds,
        engine=parts[0].engine,
    )


def merge_operations(several: Iterable[OperationOutcome]) -> list[OperationOutcome]:
    """Merges operations of equal names."""
    by_name: dict[str, list[OperationOutcome]] = {}
    for one in several:
        by_name.setdefault(one.name, []).append(one)
    return [_merge_operation(own) for own in by_name.values()]


def _merge_operation(own: Sequence[OperationOutcome]) -> OperationOutcome:
    errors: Counter[str] = Counter()
    for one in own:
        errors.update({kind: count for kind, count in one.errors.items() if count})
    return OperationOutcome(
        name=own[0].name,
        kind=own[0].kind,
        count=sum(one.count for one in own),
        ok=sum(one.ok for one in own),
        errors=dict(errors),
        first_error=next((one.first_error for one in own if one.first_error), None),
        latency=combine_histograms(one.latency for one in own),
        service=combine_histograms(one.service for one in own),
        failed=combine_histograms(one.failed for one in own),
        sent_bytes=sum(one.sent_bytes for one in own),
        received_bytes=sum(one.received_bytes for one in own),
        json_replies=sum(one.json_replies for one in own),
        sse_replies=sum(one.sse_replies for one in own),
    )


def _concatenate_seconds(parts: Sequence[Outcome]) -> list[Second]:
    """Concatenates the time series. Time between two loads is left out."""
    seconds, start = [], 0.0
    for part in parts:
        seconds += [second.model_copy(update={"at_s": start + second.at_s}) for second in part.seconds]
        start += part.elapsed_s
    return seconds


def _merge_engines(parts: Sequence[Outcome]) -> Engine:
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
