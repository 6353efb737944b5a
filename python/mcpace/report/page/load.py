"""A load for the page: operations with their distributions, a time series, thresholds and the generator."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from mcpace.report.model.load import Latencies, LoadOperation, LoadSecond
from mcpace.report.model.run import Case, Run
from mcpace.report.page.model import Distribution, Fact, LoadShown, OperationShown, Percentiles, Series, Threshold
from mcpace.report.words.load import (
    due_seconds,
    errors_of,
    lateness_words,
    length_words,
    limit_words,
    model_words,
    threshold_words,
)
from mcpace.report.words.quantities import clean, count, duration, round_digits, share
from mcpace.report.words.tokens import result_words

PER_DECADE = 40
"""Number of bins in a decade. A bin is 6 % wide, which is narrower than a pixel of the drawing."""
MOST_POINTS = 600
"""Maximum number of points in a time series. In a longer series, a point stands for several seconds."""


def loads(run: Run) -> list[LoadShown]:
    """All load cases; none for a comparison of servers, which has a separate view."""
    return [_load_view(case) for case in run.cases if case.load is not None] if run.servers is None else []


def _load_view(case: Case) -> LoadShown:
    load = case.load
    assert load is not None, "a case of load"
    ended = sum(one.count for one in (case.by_tool or {}).values())
    return LoadShown(
        target=clean(case.target, 120),
        model=f"{model_words(load.model)}, {length_words(case)}",
        rate=case.throughput_rps or 0.0,
        failed=case.errors or 0,
        failed_share=share(case.errors or 0, ended),
        latency=percentiles(case.latency_s),
        operations=operations(case.by_tool) + operations(load.others, apart=True),
        series=series(due_seconds(case)),
        thresholds=[
            Threshold(text=clean(one.text, 60), met=one.met, words=threshold_words(one)) for one in load.thresholds
        ],
        facts=_load_facts(case),
        limit=limit_words(case),
    )


def operations(found: dict[str, LoadOperation] | None, *, apart: bool = False) -> list[OperationShown]:
    """The operations for a table, one row each."""
    return [_operation_view(one, apart) for one in (found or {}).values()]


def _operation_view(one: LoadOperation, apart: bool) -> OperationShown:
    return OperationShown(
        name=clean(one.name, 60),
        apart=apart,
        rate=one.throughput_rps,
        good=one.ok,
        failed=one.count - one.ok,
        errors=errors_of(one),
        first_error=clean(one.first_error or "", 300),
        latency=percentiles(one.latency_s),
        sent=percentiles(one.service_s),
        failed_latency=percentiles(one.failed_s),
        distribution=distribution(one.latency_buckets),
    )


def percentiles(told: Latencies | None) -> Percentiles | None:
    """The measured percentiles, unchanged."""
    return None if told is None else Percentiles.model_validate(told.model_dump())


def distribution(buckets: Iterable[tuple[int, int]]) -> Distribution | None:
    """The run's fine buckets merged into the bins of a drawing; ``None`` where there are none."""
    bins: Counter[int] = Counter()
    for upper_ns, number in buckets:
        # A value just below the upper bound puts a bucket that ends at the edge of a bin into the lower bin.
        bins[math.floor(math.log10(max(upper_ns, 1) * 0.9999 / 1e9) * PER_DECADE)] += number
    if not bins:
        return None
    first, last = min(bins), max(bins)
    return Distribution(per_decade=PER_DECADE, first=first, counts=[bins[at] for at in range(first, last + 1)])


def series(seconds: Sequence[LoadSecond]) -> Series | None:
    """A load over time; ``None`` where there are fewer than two points."""
    step = -(-len(seconds) // MOST_POINTS) or 1
    points = [seconds[start : start + step] for start in range(0, len(seconds), step)]
    if len(points) < 2:
        return None
    return Series(
        step_s=step,
        at_s=[point[0].at_s for point in points],
        ok=[round(sum(second.ok for second in point) / len(point), 1) for point in points],
        errors=[sum(second.errors for second in point) for point in points],
        due=[round(sum(second.intended for second in point) / len(point), 1) for point in points],
        p50_s=[_worst(second.p50_s for second in point) for point in points],
        p90_s=[_worst(second.p90_s for second in point) for point in points],
        p99_s=[_worst(second.p99_s for second in point) for point in points],
        max_s=[_worst(second.max_s for second in point) for point in points],
        users=[max(second.users for second in point) for point in points],
        busy=[round(sum(second.engine_busy for second in point) / len(point), 3) for point in points],
        warm_up=sum(point[-1].warm_up for point in points),
    )


def _worst(values: Iterable[float | None]) -> float | None:
    worst = max((value for value in values if value is not None), default=None)
    return None if worst is None else round_digits(worst, 4)


def _load_facts(case: Case) -> list[Fact]:
    load = case.load
    assert load is not None, "a case of load"
    found, engine = load.connections, load.engine
    return [
        Fact(
            name="Calls",
            value=f"{load.begun:,} of {load.intended:,} started, {load.dropped:,} never started, {load.late:,} started "
            f"late, since no slot was free, {load.unfinished:,} unfinished",
        ),
        Fact(
            name="Connections",
            value=f"{found.opened:,} opened, {found.reused_requests:,} requests on kept ones, {found.failed:,} "
            f"failed, {found.closed_by_peer:,} closed by the target",
        ),
        Fact(
            name="Generator",
            value=f"{count(engine.threads, 'thread')}, {share(engine.busy, 1)} busy, {duration(engine.cpu_s)} of "
            f"processor time; {lateness_words(engine.late_p99_s)}",
        ),
        *([Fact(name="Tokens", value=results)] if (results := result_words(case)) else []),
    ]
