"""Differences between two paths that were measured in paired rounds, with their 95 % intervals.

Repetitions of one round share a session and a moment of the machine, so rounds are the independent units: means are
compared by Student's t over the differences of the rounds, and percentiles by a bootstrap that draws whole rounds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

from mcpace.lab.statistics.student import student_quantile

FEWEST_ROUNDS = 5
"""Fewest rounds for a bootstrap."""
RESAMPLES = 1999
SEED = 20261126
"""Fixed seed, so that the same samples give the same interval."""

Interval = tuple[float, float] | None


def mean_difference(differences: Sequence[float]) -> Interval:
    """95 % interval of the mean of the rounds' differences; ``None`` for fewer than two rounds."""
    if len(differences) < 2:
        return None
    mean = statistics.fmean(differences)
    spread = student_quantile(len(differences) - 1, 0.025) * statistics.stdev(differences) / math.sqrt(len(differences))
    return mean - spread, mean + spread


def quantile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least ``share`` of the samples don't exceed."""
    ordered = sorted(samples)
    return ordered[max(1, math.ceil(share * len(ordered) - 1e-9)) - 1]


def quantile_difference(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], share: float) -> Interval:
    """95 % interval of the difference between the quantiles of all samples of ours and of theirs.

    Each element has the samples of one round; rounds at the same place are a pair. ``None`` for fewer than
    FEWEST_ROUNDS pairs in which both sides have samples.
    """
    pairs = [(x, y) for x, y in zip(ours, theirs, strict=False) if x and y]
    if len(pairs) < FEWEST_ROUNDS:
        return None
    source = np.random.default_rng(SEED)
    drawn = source.integers(0, len(pairs), (RESAMPLES, len(pairs)))
    differences = []
    for rounds in drawn:
        x = np.concatenate([pairs[number][0] for number in rounds])
        y = np.concatenate([pairs[number][1] for number in rounds])
        differences.append(_quantile(x, share) - _quantile(y, share))
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)


def _quantile(samples: np.ndarray, share: float) -> float:
    place = max(1, math.ceil(share * len(samples) - 1e-9)) - 1
    return float(np.partition(samples, place)[place])
