"""Is this case slower than that one? A ratio with an interval that holds for a handful of trials.

The interval is distribution-free: Hodges and Lehmann's shift on the log scale with the confidence bounds of the
Wilcoxon–Mann–Whitney rank-sum test (Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, §4.3). A
bootstrap's interval over a handful of trials is too narrow: noise alone made it call releases slower.
"""

from __future__ import annotations

import statistics

import numpy as np

from mcpace.report.run import Case, Change

MINIMUM_TRIALS = 4
"""Warm trials that each side must have: with three, no distribution-free interval reaches 95 %."""

CONFIDENCE = 0.95

EXACT_PAIRS = 2_500
"""Up to this many pairs of trials the bounds are exact; past it the normal approximation is."""


def change(case: Case, against: Case) -> Change | None:
    """How ``case`` compares with ``against``; ``None`` where either has too few warm trials to say."""
    ours, theirs = case.trials_s[1:], against.trials_s[1:]
    if min(len(ours), len(theirs)) < MINIMUM_TRIALS or min(*ours, *theirs) <= 0:
        return None
    ratio, low, high = ratio_interval(ours, theirs)
    difference = statistics.median(ours) - statistics.median(theirs)
    return Change(against=against.subject.label(), ratio=ratio, low=low, high=high, difference_s=difference)


def ratio_interval(
    ours: list[float], theirs: list[float], confidence: float = CONFIDENCE
) -> tuple[float, float, float]:
    """The typical ratio of one of ours to one of theirs, and its interval. At 95 % each side needs MINIMUM_TRIALS."""
    ratios = np.sort(np.divide.outer(np.asarray(ours), np.asarray(theirs)).ravel())
    left_out = _ranks_left_out(len(ours), len(theirs), confidence)
    return float(np.median(ratios)), float(ratios[left_out]), float(ratios[-1 - left_out])


def _ranks_left_out(ours: int, theirs: int, confidence: float) -> int:
    """How many of the ordered ratios lie outside the interval at each end."""
    tail = (1 - confidence) / 2
    if ours * theirs > EXACT_PAIRS:
        spread = (ours * theirs * (ours + theirs + 1) / 12) ** 0.5
        return max(0, int(ours * theirs / 2 + statistics.NormalDist().inv_cdf(tail) * spread) - 1)
    below = np.cumsum(_rank_sum_distribution(ours, theirs))
    return int(np.searchsorted(below, tail, side="right")) - 1


def _rank_sum_distribution(ours: int, theirs: int) -> np.ndarray:
    """Probability of each value 0 … ours × theirs of the Mann–Whitney statistic where nothing differs.

    Coefficients of the Gaussian binomial, a factor at a time (Mann and Whitney 1947).
    """
    counts = np.zeros(ours * theirs + 1)
    counts[0] = 1
    for factor in range(1, ours + 1):
        for at in range(len(counts) - 1, theirs + factor - 1, -1):
            counts[at] -= counts[at - theirs - factor]
        for at in range(factor, len(counts)):
            counts[at] += counts[at - factor]
    return np.asarray(counts / counts.sum())
