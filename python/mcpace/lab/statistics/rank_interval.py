"""Is this case slower than that one? A ratio with an interval that holds for a handful of trials.

The interval is distribution-free: Hodges and Lehmann's shift on the log scale with the confidence bounds of the
Wilcoxon–Mann–Whitney rank-sum test (Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, §4.3). A
bootstrap's interval over a handful of trials is too narrow: noise alone made it call releases slower.
"""

from __future__ import annotations

import statistics

import numpy as np

from mcpace.report.model.run import Case, Change

MINIMUM_TRIALS = 4
"""Warm trials that each side must have: with three, no distribution-free interval reaches 95 %."""

CONFIDENCE = 0.95

EXACT_PAIRS = 2_500
"""Up to this many pairs of trials the bounds are exact; past it the normal approximation is."""

SORTED_PAIRS = 1_000_000
"""Up to this many pairs all ratios are written down; past it the few that are wanted are searched for."""

HALVINGS = 100
"""Enough to come from any two numbers to two that are next to each other."""


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
    pairs = len(ours) * len(theirs)
    left_out = _ranks_left_out(len(ours), len(theirs), confidence)
    places = [(pairs - 1) // 2, pairs // 2, left_out, pairs - 1 - left_out]
    lower, upper, low, high = _ordered(np.sort(np.asarray(ours)), np.sort(np.asarray(theirs)), places)
    return (lower + upper) / 2, low, high


def _ordered(ours: np.ndarray, theirs: np.ndarray, places: list[int]) -> list[float]:
    """The ratios at these places of all of them in order; both sides are."""
    if len(ours) * len(theirs) <= SORTED_PAIRS:
        ratios = np.sort(np.divide.outer(ours, theirs).ravel())
        return [float(ratios[place]) for place in places]
    return [_at(ours, theirs, place) for place in places]


def _at(ours: np.ndarray, theirs: np.ndarray, place: int) -> float:
    """The smallest ratio that more than ``place`` are not above: halving, and counting without writing them down."""
    low, high = float(ours[0] / theirs[-1]), float(ours[-1] / theirs[0])
    for _ in range(HALVINGS):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        if int(np.searchsorted(ours, middle * theirs, side="right").sum()) > place:
            high = middle
        else:
            low = middle
    return high


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
