"""The figures of a load as metrics: names, labels, values. The other modules of this package send them.

Histograms keep the engine's own buckets, merged into a limited number, because a collector's own bounds would lose
precision.
Names follow Prometheus' conventions: base units, ``_total`` for counters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mcpace.report.model.load import LoadOperation
from mcpace.report.model.run import Case, Run
from mcpace.report.words.quantities import clean

MOST_BOUNDS = 120


@dataclass(frozen=True)
class Value:
    """One number."""

    name: str
    help: str
    kind: Literal["counter", "gauge"]
    unit: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True)
class Distribution:
    """A histogram of durations."""

    name: str
    help: str
    labels: dict[str, str]
    bounds: list[float]
    """Upper bounds in seconds, in ascending order."""
    counts: list[int]
    """Number of values in each bucket, not cumulative. The last bucket is above the last bound."""
    count: int
    sum: float
    min: float
    max: float


def values(run: Run) -> Iterator[Value]:
    """Every counter and gauge of a run."""
    for case in run.cases:
        if case.load is None:
            continue
        labels = {"target": clean(case.target, 200)}
        yield from _case_values(case, labels)
        for operation in operations(case):
            own = {**labels, "operation": clean(operation.name, 200)}
            yield Value("mcpace_load_requests", "Requests that ended well.", "counter", "1", own, operation.ok)
            for kind, count in operation.errors.items():
                failed = {**own, "error": clean(kind, 40)}
                yield Value("mcpace_load_errors", "Requests that failed, by kind.", "counter", "1", failed, count)
            rate = operation.throughput_rps
            yield Value("mcpace_load_throughput", "Good replies a second.", "gauge", "1/s", own, rate)


def distributions(run: Run) -> Iterator[Distribution]:
    """Every histogram of a run."""
    for case in run.cases:
        for operation in operations(case):
            told = operation.latency_s
            if told is None:
                continue
            bounds, counts = merge_buckets(operation.latency_buckets)
            yield Distribution(
                "mcpace_load_latency_seconds",
                "From when a request was due to its whole reply; good ones.",
                {"target": clean(case.target, 200), "operation": clean(operation.name, 200)},
                bounds,
                [*counts, 0],
                told.count,
                told.mean * told.count,
                told.min,
                told.max,
            )


def operations(case: Case) -> list[LoadOperation]:
    """The operations of a case: its calls, and the requests that are counted separately."""
    others = case.load.others if case.load else {}
    return [*(case.by_tool or {}).values(), *others.values()]


def merge_buckets(buckets: list[tuple[int, int]]) -> tuple[list[float], list[int]]:
    """Merges neighbouring buckets into at most :data:`MOST_BOUNDS` ones. The remaining bounds are exact."""
    step = -(-len(buckets) // MOST_BOUNDS) or 1
    groups = [buckets[start : start + step] for start in range(0, len(buckets), step)]
    return [group[-1][0] / 1e9 for group in groups], [sum(count for _, count in group) for group in groups]


def _case_values(case: Case, labels: dict[str, str]) -> Iterator[Value]:
    load = case.load
    assert load is not None, "a case of load"
    connections = load.connections
    for name, help_, count in (
        ("mcpace_load_intended", "Calls that were due.", load.intended),
        ("mcpace_load_dropped", "Calls that were due and never begun.", load.dropped),
        ("mcpace_load_late", "Calls that waited for a free slot.", load.late),
        ("mcpace_load_connections_opened", "Connections opened.", connections.opened),
        ("mcpace_load_connections_closed_by_peer", "Connections that the target closed.", connections.closed_by_peer),
    ):
        yield Value(name, help_, "counter", "1", labels, count)
    yield Value("mcpace_load_measured_seconds", "What was measured.", "gauge", "s", labels, load.measured_s)
    yield Value(
        "mcpace_load_generator_saturated",
        "Whether the generator was the limit.",
        "gauge",
        "1",
        labels,
        float(load.engine.saturated),
    )
    yield Value("mcpace_load_generator_busy", "Share of its time.", "gauge", "1", labels, load.engine.busy)
