"""Ratios with intervals."""

from __future__ import annotations

import random

from mcpace.lab.comparison import change, ratio_interval
from mcpace.report.run import Case, Subject


def case(version: str, trials: list[float]) -> Case:
    return Case(subject=Subject(sdk="python", version=version), target="t", operation="call", trials_s=trials)


def test_a_clear_change_has_an_interval_around_its_ratio() -> None:
    found = change(case("2", [9, 3.0, 3.1, 2.9]), case("1", [9, 1.0, 1.02, 0.98]))
    assert found is not None
    assert found.against == "python@1"
    assert 2.8 < found.low <= found.ratio <= found.high < 3.2
    assert abs(found.difference_s - 2.0) < 0.1


def test_the_cold_trial_takes_no_part() -> None:
    found = change(case("2", [100, 1, 1, 1]), case("1", [1, 1, 1, 1]))
    assert found is not None and (found.low, found.ratio, found.high) == (1, 1, 1)


def test_too_few_trials_say_nothing() -> None:
    assert change(case("2", [1, 1, 1]), case("1", [1, 1, 1, 1])) is None
    assert change(case("2", []), case("1", [])) is None


def test_a_thing_compared_with_itself_is_rarely_called_different() -> None:
    """Coverage: with 30 lognormal trials a side, the interval should hold 1 about 95 times in 100."""
    source = random.Random(7)

    def trials() -> list[float]:
        return [source.lognormvariate(0, 0.2) for _ in range(30)]

    intervals = [ratio_interval(trials(), trials()) for _ in range(100)]
    assert sum(low <= 1 <= high for low, high in intervals) >= 88
