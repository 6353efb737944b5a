"""Ratios with distribution-free intervals."""

from __future__ import annotations

import random
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from mcpace.lab.statistics import rank_interval
from mcpace.lab.statistics.rank_interval import _rank_sum_distribution, ratio_interval, trial_change
from mcpace.report.model.run import Case, Subject


def case(version: str, trials: list[float]) -> Case:
    return Case(subject=Subject(sdk="python", version=version), target="t", operation="call", trials_s=trials)


def test_a_clear_change_has_an_interval_around_its_ratio() -> None:
    found = trial_change(case("2", [9, 3.0, 3.1, 2.9, 3.0]), case("1", [9, 1.0, 1.02, 0.98, 1.0]))
    assert found is not None
    assert found.against == "python@1"
    assert 2.8 < found.low <= found.ratio <= found.high < 3.2
    assert found.difference_s == pytest.approx(2.0)


def test_the_cold_trial_takes_no_part() -> None:
    found = trial_change(case("2", [100, 1, 1, 1, 1]), case("1", [1, 1, 1, 1, 1]))
    assert found is not None and (found.low, found.ratio, found.high) == (1, 1, 1)


def test_too_few_trials_say_nothing() -> None:
    assert trial_change(case("2", [1, 1, 1, 1]), case("1", [1, 1, 1, 1, 1])) is None
    assert trial_change(case("2", []), case("1", [])) is None


@pytest.mark.parametrize(("ours", "theirs"), [(4, 4), (4, 7), (5, 3)])
def test_the_distribution_is_that_of_all_ways_to_mix_both_sides(ours: int, theirs: int) -> None:
    sums = [sum(places) - ours * (ours - 1) // 2 for places in combinations(range(ours + theirs), ours)]
    counted = np.bincount(sums, minlength=ours * theirs + 1) / len(sums)
    assert _rank_sum_distribution(ours, theirs) == pytest.approx(counted)


def test_the_interval_agrees_with_the_test_it_comes_from() -> None:
    """The interval contains 1 exactly if the two-sided rank-sum test finds no difference at 5 %."""
    source = random.Random(3)
    seen = set()
    for _ in range(300):
        ours = [source.lognormvariate(0.4, 0.3) for _ in range(6)]
        theirs = [source.lognormvariate(0, 0.3) for _ in range(5)]
        _, low, high = ratio_interval(ours, theirs)
        p = stats.mannwhitneyu(ours, theirs, method="exact").pvalue
        assert (low <= 1 <= high) == (p > 0.05)
        seen.add(p > 0.05)
    assert seen == {True, False}


@pytest.mark.parametrize("trials", [4, 8, 60])
def test_a_thing_compared_with_itself_is_called_different_at_most_five_times_in_a_hundred(trials: int) -> None:
    source = random.Random(trials)

    def sample() -> list[float]:
        return [source.lognormvariate(0, 0.5) for _ in range(trials)]

    intervals = [ratio_interval(sample(), sample()) for _ in range(1_000)]
    different = sum(not low <= 1 <= high for _, low, high in intervals)
    # At most 5 %, and three standard deviations of the count for the sample's own luck.
    assert different <= 50 + 3 * (1_000 * 0.05 * 0.95) ** 0.5


def test_many_trials_are_compared_alike_and_without_writing_all_pairs_down(monkeypatch: pytest.MonkeyPatch) -> None:
    source = np.random.default_rng(7)
    ours, theirs = (list(source.lognormal(mean, 0.4, count)) for mean, count in ((0.2, 700), (0.0, 601)))
    written = ratio_interval(ours, theirs)
    monkeypatch.setattr(rank_interval, "SORTED_PAIRS", 0)
    assert ratio_interval(ours, theirs) == pytest.approx(written, rel=1e-12)
    assert ratio_interval([2.0] * 50, [1.0] * 50) == pytest.approx((2.0, 2.0, 2.0))
    monkeypatch.undo()
    tracemalloc.start()
    try:
        ratio_interval(ours * 6, theirs * 6)
        # 15 million pairs are 121 MB.
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
