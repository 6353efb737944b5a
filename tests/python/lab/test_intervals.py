"""Coverage and power of the intervals of series."""

from __future__ import annotations

import numpy as np
import pytest

from mcpace.lab.statistics.block_interval import (
    batch_means,
    ratio_of_series,
    smallest_detectable_ratio,
    wilson_interval,
)


def seconds(source: np.random.Generator, count: int, resemblance: float) -> list[float]:
    """Rates with correlated neighbours: a first-order autoregression, 10 % wide."""
    noise = source.normal(0, 1, count)
    values = np.empty(count)
    values[0] = noise[0]
    for place in range(1, count):
        values[place] = resemblance * values[place - 1] + (1 - resemblance**2) ** 0.5 * noise[place]
    return [float(value) for value in 1000 * np.exp(0.1 * values)]


@pytest.mark.parametrize(("count", "resemblance"), [(30, 0.0), (60, 0.5), (300, 0.5)])
def test_a_load_compared_with_itself_is_called_different_in_one_case_of_twenty(count: int, resemblance: float) -> None:
    source = np.random.default_rng(5)
    wrong = 0
    for _ in range(400):
        found = ratio_of_series(seconds(source, count, resemblance), seconds(source, count, resemblance))
        assert found is not None
        wrong += not found[1] <= 1 <= found[2]
    assert wrong / 400 <= 0.08  # 5 %, and three standard errors of so many comparisons


def test_a_load_that_is_a_fifth_slower_is_called_so() -> None:
    source = np.random.default_rng(5)
    base = seconds(source, 60, 0.3)
    found = ratio_of_series([0.8 * value for value in seconds(source, 60, 0.3)], base)
    assert found is not None
    ratio, low, high, ours, theirs = found
    assert low <= ratio <= high < 1
    assert ours == theirs == 5


def test_a_short_load_says_nothing() -> None:
    assert ratio_of_series([1.0] * 19, [1.0] * 60) is None
    assert ratio_of_series([0.0] * 20, [1.0] * 60) is None
    assert batch_means([1.0] * 19) == []


def test_a_load_without_any_spread_has_a_point() -> None:
    assert ratio_of_series([2.0] * 20, [1.0] * 20) == (2.0, 2.0, 2.0, 5, 5)


def test_what_would_have_been_seen_is_seen_in_four_cases_of_five() -> None:
    """For normal values and an effect of that size, the interval excludes 1 about 80 times in 100."""
    source = np.random.default_rng(9)
    error = 0.05
    effect = smallest_detectable_ratio(float(np.exp(-1.96 * error)), float(np.exp(1.96 * error)))
    estimates = np.log(effect) + error * source.normal(0, 1, 20_000)
    assert np.mean(estimates - 1.96 * error > 0) == pytest.approx(0.8, abs=0.01)


def test_shares_of_errors_have_wilsons_interval() -> None:
    # Brown, Cai and DasGupta, Statistical Science 16 (2001), table 1's kind: 0 of 10 reaches up to 0.2775.
    assert wilson_interval(0, 10) == (0.0, pytest.approx(0.27753, abs=1e-5))
    assert wilson_interval(0, 0) == (0.0, 1.0)
    low, high = wilson_interval(50, 100)
    assert low == pytest.approx(1 - high) and low == pytest.approx(0.40383, abs=1e-5)
