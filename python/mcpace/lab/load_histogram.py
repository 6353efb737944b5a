"""Histograms as the engine gives them: (upper bound in nanoseconds, count), three significant digits.

Design constraint: whatever is made of several is made of their buckets; percentiles are never averaged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from mcpace.report.run_load import Latencies

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


def together(parts: Sequence[tuple[Latencies, Buckets]]) -> Latencies | None:
    """One distribution of several; of one alone, its own figures. Those without samples are passed over."""
    parts = [part for part in parts if part[0].count]
    if len(parts) < 2:
        return parts[0][0] if parts else None
    buckets = merged(own for _, own in parts)
    count = sum(told.count for told, _ in parts)
    largest = max(told.max for told, _ in parts)

    def value(share: float) -> float:
        return min(at(buckets, share) or 0.0, largest)

    return Latencies(
        count=count,
        mean=sum(told.mean * told.count for told, _ in parts) / count,
        min=min(told.min for told, _ in parts),
        p50=value(0.5),
        p90=value(0.9),
        p99=value(0.99),
        p999=value(0.999),
        max=largest,
    )
