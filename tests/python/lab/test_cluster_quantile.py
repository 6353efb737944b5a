"""Intervals of quantiles of samples in clusters, and of their ratios."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from mcpace.lab.statistics.cluster_quantile import Cluster, Distribution, quantile_interval, ratio_interval

REPETITIONS = 400


def distribution(samples: np.ndarray) -> Distribution:
    made = Distribution()
    for value, count in sorted(Counter(samples.tolist()).items()):
        made.add(value, count)
    return made


def side(dice: np.random.Generator, clusters: int, samples: int, spread: float) -> list[np.ndarray]:
    """Durations whose level differs from one cluster to the next."""
    levels = dice.normal(0, spread, clusters)
    return [(1e6 * np.exp(level + dice.normal(0, 0.5, samples))).astype(int) for level in levels]


def interval(clusters: list[np.ndarray], share: float, *, independent: bool) -> tuple[int, tuple[int, int] | None]:
    samples = np.concatenate(clusters)
    held = distribution(samples)
    value = held.quantile(share)
    of = [samples[start : start + 1] for start in range(len(samples))] if independent else clusters
    counts: list[Cluster] = [(len(one), int((one <= value).sum())) for one in of]
    return value, quantile_interval(held, share, counts)


def wrong(share: float, *, independent: bool) -> float:
    """Share of the ratios of equal populations whose interval excludes 1."""
    dice = np.random.default_rng(20261126)
    found = []
    for _ in range(REPETITIONS):
        ours, theirs = (interval(side(dice, 12, 40, 0.3), share, independent=independent) for _ in range(2))
        if ours[1] and theirs[1] and (known := ratio_interval(ours[0], ours[1], theirs[0], theirs[1])):
            found.append(not known[0] <= 1 <= known[1])
    assert len(found) >= REPETITIONS / 2
    return sum(found) / len(found)


def test_the_interval_of_a_median_holds_where_clusters_differ() -> None:
    # Three standard errors above 5 %.
    assert wrong(0.5, independent=False) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / REPETITIONS)
    assert wrong(0.5, independent=True) > 0.3


def test_a_clear_difference_is_outside_of_the_interval() -> None:
    dice = np.random.default_rng(1)
    before = interval(side(dice, 20, 50, 0.2), 0.5, independent=False)
    since = interval([2 * one for one in side(dice, 20, 50, 0.2)], 0.5, independent=False)
    assert before[1] and since[1]
    known = ratio_interval(since[0], since[1], before[0], before[1])
    assert known is not None and 1.5 < known[0] < 2 < known[1] < 2.7


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("number", [1, 2, 99, 100, 101])
def test_a_quantile_is_the_smallest_value_that_enough_samples_do_not_exceed(share: float, number: int) -> None:
    held = distribution(np.arange(1, number + 1))
    value = held.quantile(share)
    assert value >= share * number - 1e-6
    assert value == 1 or value - 1 < share * number


def test_few_clusters_and_far_quantiles_have_no_interval() -> None:
    dice = np.random.default_rng(2)
    assert interval(side(dice, 4, 50, 0.1), 0.5, independent=False)[1] is None
    assert interval(side(dice, 8, 10, 0.1), 0.99, independent=False)[1] is None
    assert ratio_interval(1, (0, 2), 1, (1, 1)) is None
