"""Sequential comparison of paired slices: error over all looks, power, and the rounds that early answers save."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from mcpace.lab.statistics.block_interval import wilson_interval
from mcpace.lab.statistics.sequential_ratio import LOOKS, MOST_PAIRS, SequentialRatio, sequential_ratio
from mcpace.lab.statistics.student import student_quantile

CONFIDENCE = 0.99
FIXED_ROUNDS = 6
"""Rounds of each change before its answer ended them."""
VARIANTS = 12
"""Changes that a run tries."""
FEWEST_RUNS = 500

Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
NOISES: dict[str, Noise] = {
    "quiet machine": lambda dice, shape: dice.normal(0, 0.02, shape),
    "usual machine": lambda dice, shape: dice.normal(0, 0.07, shape),
    "heavy tails": lambda dice, shape: 0.05 * dice.standard_t(3, shape),
    "stalls": lambda dice, shape: dice.normal(0, 0.04, shape) + 0.3 * (dice.random(shape) < 0.1),
}
"""Logarithm of a slice's median, around its true value."""


def measured_answer(ours: np.ndarray, theirs: np.ndarray, limit: int = MOST_PAIRS) -> tuple[SequentialRatio, int]:
    """Looks at the pairs as they come, and returns the answer and the number of pairs that it took."""
    for look in LOOKS:
        if look > limit:
            break
        found = sequential_ratio(ours[:look], theirs[:look], CONFIDENCE, is_last=False)
        if found.verdict != "unclear":
            return found, look
    return sequential_ratio(ours[:limit], theirs[:limit], CONFIDENCE, is_last=True), limit


def simulated_answers(
    noise: Noise, effect: float, runs: int, limit: int = MOST_PAIRS
) -> list[tuple[SequentialRatio, int]]:
    """Answers of runs whose base case is the mean of two slices, one before and one after."""
    dice = np.random.default_rng(20250618)
    base = np.exp(noise(dice, (runs, MOST_PAIRS, 2))).mean(2)
    changed = effect * np.exp(noise(dice, (runs, MOST_PAIRS)))
    return [measured_answer(ours, theirs, limit) for ours, theirs in zip(changed, base, strict=True)]


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("limit", [5, MOST_PAIRS])
def test_a_change_without_effect_raises_an_alarm_in_one_of_a_hundred_at_most(name: str, limit: int) -> None:
    found = simulated_answers(NOISES[name], 1.0, FEWEST_RUNS * VARIANTS, limit)
    alarms = np.array([answer.verdict in ("slower", "faster") for answer, _ in found])
    runs = int(alarms.reshape(-1, VARIANTS).any(1).sum())
    rounds = np.mean([count for _, count in found])
    print(
        f"{name}, {limit} rounds at most: alarms in {alarms.mean():.2%} of changes, {runs / FEWEST_RUNS:.1%} of runs,"
    )
    same = np.mean([answer.verdict == "same" for answer, _ in found])
    print(f"  same in {same:.0%}; {rounds:.1f} rounds on average, {1 - rounds / limit:.0%} fewer than {limit}")
    assert alarms.mean() <= 1 - CONFIDENCE


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("effect", [1.3, 1 / 1.3])
def test_an_effect_of_a_third_is_found_in_nine_of_ten(name: str, effect: float) -> None:
    found = simulated_answers(NOISES[name], effect, 1000)
    verdict = "slower" if effect > 1 else "faster"
    power = np.mean([answer.verdict == verdict for answer, _ in found])
    rounds = np.mean([count for _, count in found])
    print(f"{name}, {effect:.2f}×: found in {power:.1%}, {rounds:.1f} rounds on average,")
    print(
        f"  {1 - rounds / MOST_PAIRS:.0%} fewer than {MOST_PAIRS}, {1 - rounds / FIXED_ROUNDS:.0%} than {FIXED_ROUNDS}"
    )
    assert power >= 0.9
    assert not any(answer.verdict == ("faster" if effect > 1 else "slower") for answer, _ in found)


@pytest.mark.parametrize("effect", [1.0, 1.08, 1.3])
def test_the_interval_covers_the_ratio_whenever_the_rounds_end(effect: float) -> None:
    found = simulated_answers(NOISES["usual machine"], effect, 3000)
    missed = sum(not answer.low <= effect <= answer.high for answer, _ in found)
    assert wilson_interval(missed, len(found))[0] <= 1 - CONFIDENCE


def test_the_error_of_the_looks_adds_up_to_the_whole() -> None:
    pairs = np.exp(np.random.default_rng(1).normal(0, 0.1, MOST_PAIRS)), np.ones(MOST_PAIRS)

    def spent(count: int, *, is_last: bool) -> float:
        ours, theirs = (values[:count] for values in pairs)
        found = sequential_ratio(ours, theirs, CONFIDENCE, is_last=is_last)
        logs = np.log(ours)
        half = np.log(found.high / found.low) / 2 / (logs.std(ddof=1) / np.sqrt(count))
        return float(2 * scipy.stats.t.sf(half, count - 1))

    whole = sum(spent(look, is_last=False) for look in LOOKS)
    assert whole == pytest.approx(1 - CONFIDENCE)
    assert spent(LOOKS[0], is_last=False) + spent(5, is_last=True) == pytest.approx(1 - CONFIDENCE)


def test_an_answer_is_clear_where_the_interval_is_on_one_side_or_narrow() -> None:
    def verdict(*ours: float) -> str:
        return sequential_ratio(ours, [1.0] * len(ours), CONFIDENCE, is_last=True).verdict

    assert verdict(1.30, 1.31, 1.29, 1.30) == "slower"
    assert verdict(0.70, 0.71, 0.69, 0.70) == "faster"
    assert verdict(1.00, 1.01, 0.99, 1.00) == "same"
    assert verdict(1.03, 1.031, 1.029, 1.03) == "same"
    assert verdict(0.8, 1.2, 1.1, 0.9) == "unclear"
    assert verdict(1.0, 1.0, 1.0, 1.0) == "same"


@pytest.mark.parametrize("tail", [0.05, 0.025, 0.005, 0.0005, 0.00001])
def test_quantiles_of_students_t_are_scipys(tail: float) -> None:
    degrees = [*range(1, 40), 200]
    expected = [scipy.stats.t.isf(tail, freedom) for freedom in degrees]
    assert [student_quantile(freedom, tail) for freedom in degrees] == pytest.approx(expected, rel=1e-6)
