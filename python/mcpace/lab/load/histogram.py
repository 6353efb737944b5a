"""Histograms of the engine: buckets of (upper bound in nanoseconds, count), with three significant digits.

Design constraint: Histograms are combined by their buckets; percentiles are never averaged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from mcpace.lab.load.engine_outcome import Histogram
from mcpace.report.model.load import Latencies

Buckets = Sequence[tuple[int, int]]


def merge_buckets(histograms: Iterable[Buckets]) -> list[tuple[int, int]]:
    """Merges the samples of several histograms."""
    counts: Counter[int] = Counter()
    for buckets in histograms:
        for bound, count in buckets:
            counts[bound] += count
    return sorted(counts.items())


def quantile_seconds(buckets: Buckets, share: float) -> float | None:
    """Quantile in seconds: the value that this share of the samples doesn't exceed; ``None`` without samples."""
    total = sum(count for _, count in buckets)
    if not total:
        return None
    wanted, seen = max(1, math.ceil(share * total - 1e-9)), 0
    for bound, count in buckets:
        seen += count
        if seen >= wanted:
            return bound / 1e9
    return buckets[-1][0] / 1e9


def combine_histograms(parts: Iterable[Histogram]) -> Histogram:
    """Combines several distributions. Distributions without samples are skipped; a single one is returned as is."""
    parts = [part for part in parts if part.count]
    if len(parts) < 2:
        return parts[0] if parts else Histogram()
    buckets = merge_buckets(part.buckets for part in parts)
    count = sum(part.count for part in parts)
    largest = max(part.max_s for part in parts)

    def value(share: float) -> float:
        return min(quantile_seconds(buckets, share) or 0.0, largest)

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


def histogram_latencies(histogram: Histogram) -> Latencies | None:
    """Converts a histogram to the Run's latencies; ``None`` without samples."""
    if not histogram.count:
        return None
    return Latencies(
        count=histogram.count,
        mean=histogram.mean_s,
        min=histogram.min_s,
        p50=histogram.p50_s,
        p90=histogram.p90_s,
        p99=histogram.p99_s,
        p999=histogram.p999_s,
        max=histogram.max_s,
    )
