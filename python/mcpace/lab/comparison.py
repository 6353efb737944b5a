"""Is this case slower than that one? A ratio of medians with a bootstrap interval (Efron 1979, percentile method)."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import stats

from mcpace.report.run import Case, Change

MINIMUM_TRIALS = 3
"""Warm trials that each side must have: below, an interval would only repeat the extremes."""

RESAMPLES = 4_000
SEED = 20_190
"""Fixed, so that one run's file always gives the same interval."""


def change(case: Case, against: Case) -> Change | None:
    """How ``case`` compares with ``against``; ``None`` where either has too few warm trials to say."""
    ours, theirs = case.trials_s[1:], against.trials_s[1:]
    if len(ours) < MINIMUM_TRIALS or len(theirs) < MINIMUM_TRIALS or min(theirs) <= 0:
        return None
    low, high = ratio_interval(ours, theirs)
    ratio = float(np.median(ours) / np.median(theirs))
    difference = float(np.median(ours) - np.median(theirs))
    return Change(against=against.subject.label(), ratio=ratio, low=low, high=high, difference_s=difference)


def ratio_interval(ours: list[float], theirs: list[float]) -> tuple[float, float]:
    """95 % interval of median(ours) / median(theirs), both resampled."""

    def ratio(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(np.median(a, axis=axis) / np.median(b, axis=axis))

    with warnings.catch_warnings():
        # Equal trials have no spread: scipy warns of a degenerate distribution, and the interval is that one value.
        warnings.simplefilter("ignore")
        outcome = stats.bootstrap(
            (np.asarray(ours), np.asarray(theirs)),
            ratio,
            n_resamples=RESAMPLES,
            method="percentile",
            vectorized=True,
            rng=np.random.default_rng(SEED),
        )
    return float(outcome.confidence_interval.low), float(outcome.confidence_interval.high)
