"""Histograms as the engine gives them: (upper bound in nanoseconds, count), three significant digits.

Design constraint: whatever is made of several is made of their buckets; percentiles are never averaged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from mcpace.lab.load.outcome import Histogram
from mcpace.report.model.load import Latencies

Buckets = Sequence[tuple[int, int]]


def merged(histograms: Iterable[Buckets]) -> list[tuple[int, int]]:
    """All of their samples."""
    counts: Counter[int] = Counter()
    for buckets in histograms:
        for bound, count in buckets:
            counts[bound] += count
    return sorted(counts.items())


def at(buckets: Buckets, share: float) -> float | None:
    """The value, seconds, that this share of the samples doesn't exceed; ``None`` without samples."""
    total = sum(count for _, count in buckets)
    if not total:
        return None
    wanted, seen = max(1, math.ceil(share * total - 1e-9)), 0
    for bound, count in buckets:
        seen += count
        if seen >= wanted:
            return bound / 1e9
    return buckets[-1][0] / 1e9


def together(parts: Iterable[Histogram]) -> Histogram:
    """One distribution of several; of one alone, itself. Those without samples are passed over."""
    parts = [part for part in parts if part.count]
    if len(parts) < 2:
        return parts[0] if parts else Histogram()
    buckets = merged(part.buckets for part in parts)
    count = sum(part.count for part in parts)
    largest = max(part.max_s for part in parts)

    def value(share: float) -> float:
        return min(at(buckets, share) or 0.0, largest)

    return Histogram(
        count=count,
        mean_s=sum(part.mean_s * part.count for part in parts) / count,
        min_s=min(part.min_s for part in parts),
        p50_s=value(0.5),
        p90_s=value(0.9),
        p99_s=value(0.99),
        p999_s=value(0.999),
        max_s=largest,
        buckets=buckets,
    )


def latencies(told: Histogram) -> Latencies | None:
    """Its figures as the Run has them; ``None`` without samples."""
    if not told.count:
        return None
    return Latencies(
        count=told.count,
        mean=told.mean_s,
        min=told.min_s,
        p50=told.p50_s,
        p90=told.p90_s,
        p99=told.p99_s,
        p999=told.p999_s,
        max=told.max_s,
    )
