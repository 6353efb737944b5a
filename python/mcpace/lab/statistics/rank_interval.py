"""Ratio between the trials of two cases, with an interval that is valid for a handful of trials.

The interval is distribution-free: Hodges and Lehmann's shift on the log scale with the confidence bounds of the
Wilcoxon–Mann–Whitney rank-sum test (Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, §4.3). A
bootstrap's interval over a handful of trials is too narrow: it called releases slower because of noise alone.
"""

from __future__ import annotations

import statistics

import numpy as np

from mcpace.report.model.run import Case, Change

MINIMUM_TRIALS = 4
"""Fewest warm trials of each side. With three trials, no distribution-free interval reaches 95 %."""

CONFIDENCE = 0.95

EXACT_PAIRS = 2_500
"""Most pairs of trials for exact bounds. Beyond it, the normal approximation is accurate enough."""

SORTED_PAIRS = 1_000_000
"""Most pairs whose ratios are all computed and sorted. Beyond it, only the needed ratios are searched for."""

HALVINGS = 100
"""Steps of a bisection that suffice to get from any two numbers to adjacent ones."""


def trial_change(case: Case, against: Case) -> Change | None:
    """Compares the trials of ``case`` with those of ``against``; ``None`` where either has too few warm trials."""
    ours, theirs = case.trials_s[1:], against.trials_s[1:]
    if min(len(ours), len(theirs)) < MINIMUM_TRIALS or min(*ours, *theirs) <= 0:
        return None
    ratio, low, high = ratio_interval(ours, theirs)
    difference = statistics.median(ours) - statistics.median(theirs)
    return Change(against=against.subject.label(), ratio=ratio, low=low, high=high, difference_s=difference)


def ratio_interval(
    ours: list[float], theirs: list[float], confidence: float = CONFIDENCE
) -> tuple[float, float, float]:
    """Median ratio over all pairs of trials, and its interval. At 95 % each side needs MINIMUM_TRIALS."""
    pairs = len(ours) * len(theirs)
    left_out = _ranks_left_out(len(ours), len(theirs), confidence)
    places = [(pairs - 1) // 2, pairs // 2, left_out, pairs - 1 - left_out]
    lower, upper, low, high = _ratios_at(np.sort(np.asarray(ours)), np.sort(np.asarray(theirs)), places)
    return (lower + upper) / 2, low, high


def _ratios_at(ours: np.ndarray, theirs: np.ndarray, places: list[int]) -> list[float]:
    """Ratios at the given places of the sorted list of all ratios. Both sides must be sorted."""
    if len(ours) * len(theirs) <= SORTED_PAIRS:
        ratios = np.sort(np.divide.outer(ours, theirs).ravel())
        return [float(ratios[place]) for place in places]
    return [_ratio_at(ours, theirs, place) for place in places]


def _ratio_at(ours: np.ndarray, theirs: np.ndarray, place: int) -> float:
    """Finds the ratio at one place of the sorted list by bisection, without computing the list."""
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
    """Number of sorted ratios outside the interval at each end."""
    tail = (1 - confidence) / 2
    if ours * theirs > EXACT_PAIRS:
        spread = (ours * theirs * (ours + theirs + 1) / 12) ** 0.5
        return max(0, int(ours * theirs / 2 + statistics.NormalDist().inv_cdf(tail) * spread) - 1)
    below = np.cumsum(_rank_sum_distribution(ours, theirs))
    return int(np.searchsorted(below, tail, side="right")) - 1


def _rank_sum_distribution(ours: int, theirs: int) -> np.ndarray:
    """Probability of each value 0 … ours × theirs of the Mann–Whitney statistic under the null hypothesis.

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
