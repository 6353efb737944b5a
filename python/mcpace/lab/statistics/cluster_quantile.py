"""Quantiles of samples in clusters, and ratios of two quantiles, with intervals.

Samples of one cluster, such as the requests of one recording within one hour, resemble each other. An interval that
takes each sample as independent is far too narrow. The interval here is Woodruff's (*JASA* 47, 1952): the share of
samples below the quantile gets the standard error of a ratio estimator over clusters (Cochran, *Sampling Techniques*,
§9A), with Student's t, and the ends of that interval are read from the distribution of all samples. It assumes
nothing about the distribution's shape. The standard error is never less than that of independent samples.

The interval of a ratio combines those of two independent quantiles on the log scale by the method of variance estimates
recovery (Zou and Donner, *Statistics in Medicine* 27, 2008).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcpace.lab.statistics.student import student_quantile

CONFIDENCE = 0.95
FEWEST_CLUSTERS = 5
"""Fewest clusters for an interval."""

Cluster = tuple[int, int]
"""Number of samples, and number of those that don't exceed the quantile."""


@dataclass
class Distribution:
    """Samples as distinct values with their counts. Values are added in ascending order."""

    values: array[int] = field(default_factory=lambda: array("q"))
    upto: array[int] = field(default_factory=lambda: array("q"))
    """Number of samples up to each value."""

    def add(self, value: int, count: int) -> None:
        """Adds samples of a value that is larger than all before."""
        self.values.append(value)
        self.upto.append(self.count + count)

    @property
    def count(self) -> int:
        """Number of samples."""
        return self.upto[-1] if self.upto else 0

    def quantile(self, share: float) -> int:
        """The smallest value that at least ``share`` of the samples don't exceed."""
        rank = max(1, math.ceil(share * self.count - 1e-9))
        return self.values[min(bisect_left(self.upto, rank), len(self.values) - 1)]


def quantile_interval(
    samples: Distribution, share: float, clusters: Sequence[Cluster], confidence: float = CONFIDENCE
) -> tuple[int, int] | None:
    """Interval of a quantile; ``None`` for fewer than FEWEST_CLUSTERS clusters, and for too few samples."""
    clusters = [one for one in clusters if one[0] > 0]
    if len(clusters) < FEWEST_CLUSTERS:
        return None
    count = sum(samples for samples, _ in clusters)
    below = sum(within for _, within in clusters) / count
    number = len(clusters)
    squares = sum((within - below * samples) ** 2 for samples, within in clusters)
    error = math.sqrt(max(number / (number - 1) * squares / count**2, share * (1 - share) / count))
    half = student_quantile(number - 1, (1 - confidence) / 2) * error
    if share - half <= 0 or share + half >= 1:
        return None
    return samples.quantile(share - half), samples.quantile(share + half + 1 / count)


def ratio_interval(
    ours: int, ours_interval: tuple[int, int], theirs: int, theirs_interval: tuple[int, int]
) -> tuple[float, float] | None:
    """Interval of the ratio of two independent quantiles; ``None`` where a value is 0."""
    if min(ours, *ours_interval, theirs, *theirs_interval) <= 0:
        return None
    (our_low, our_high), (their_low, their_high) = ours_interval, theirs_interval
    middle = math.log(ours / theirs)
    below = math.hypot(math.log(ours / our_low), math.log(their_high / theirs))
    above = math.hypot(math.log(our_high / ours), math.log(theirs / their_low))
    return math.exp(middle - below), math.exp(middle + above)
