"""Finding ``delayed-ack`` in load results: when it is suspected, and when the experiment confirms it."""

from __future__ import annotations

import random

import pytest

from mcpace.lab.load.delayed_ack import (
    Experiment,
    LoadResult,
    excess_share,
    is_confirmed,
    is_suspected,
    suspected_finding,
)
from mcpace.report.words import findings

Buckets = list[tuple[int, int]]


def drawn(*parts: tuple[float, float, float]) -> Buckets:
    """Random times in nanoseconds, 10,000 in total. Each part has a share, a mean and a spread in milliseconds."""
    dice = random.Random(4)
    counts: dict[int, int] = {}
    for share, mean, spread in parts:
        for _ in range(round(10_000 * share)):
            bound = max(int(dice.gauss(mean, spread) * 100), 1) * 10_000
            counts[bound] = counts.get(bound, 0) + 1
    return sorted(counts.items())


def seen(buckets: Buckets, *, reused: float = 0.99, cpu: float | None = 0.1) -> LoadResult:
    calls = sum(count for _, count in buckets)
    return LoadResult(buckets, sum(bound * count for bound, count in buckets) / calls / 1e9, calls, reused, cpu)


STALLED = drawn((0.5, 1.0, 0.3), (0.5, 43.0, 1.5))
ALL_STALLED = drawn((1.0, 43.9, 0.6))
QUICK = drawn((1.0, 1.3, 0.3))
SLOW = drawn((1.0, 48.0, 14.0))
FLAT = [(ms * 1_000_000, 100) for ms in range(1, 100)]
SLOPE = [(ms * 1_000_000, 200 - 2 * ms) for ms in range(1, 100)]


def test_a_hill_is_what_its_neighbourhood_does_not_explain() -> None:
    assert excess_share(STALLED) == pytest.approx(0.5, abs=0.01)
    assert excess_share(ALL_STALLED) == pytest.approx(1.0, abs=0.01)
    assert excess_share(FLAT) < 0.02
    assert excess_share(SLOPE) == 0
    assert excess_share(QUICK) == 0
    assert excess_share([]) == 0


def test_it_is_suspected_on_used_connections_of_a_server_with_time_left() -> None:
    assert is_suspected(seen(STALLED))
    assert is_suspected(seen(ALL_STALLED, cpu=None))
    assert not is_suspected(seen(QUICK))
    assert not is_suspected(seen(STALLED, reused=0.2)), "a new connection acknowledges at once"
    assert not is_suspected(seen(STALLED, cpu=0.95)), "a busy server has calls wait for its processor"


def experiment(plain: Buckets, quick: Buckets, alone: Buckets, alone_quick: Buckets) -> Experiment:
    return Experiment(seen(plain), seen(quick), seen(alone), seen(alone_quick))


PROVEN = experiment(STALLED, QUICK, ALL_STALLED, QUICK)


def test_what_vanishes_with_quick_ack_is_confirmed_and_costs_what_it_saved() -> None:
    finding = suspected_finding(seen(STALLED), PROVEN)
    assert finding is not None
    assert (finding.code, finding.confidence, finding.severity) == ("delayed-ack", "confirmed", "high")
    assert finding.cost_s == pytest.approx(0.0207, abs=0.001)
    assert finding.calls == pytest.approx(5_000, abs=100)
    assert "TCP_NODELAY" in finding.advice
    text = findings.explanation_for(finding)
    assert "50" in text
    assert "1.3" in text
    assert "TCP_QUICKACK" in text


@pytest.mark.parametrize(
    "other",
    [
        experiment(STALLED, STALLED, ALL_STALLED, ALL_STALLED),  # nothing changes
        experiment(STALLED, QUICK, ALL_STALLED, STALLED),  # half of it stays with one connection
        experiment(STALLED, STALLED, ALL_STALLED, QUICK),  # it stays under the load
        experiment(SLOW, drawn((1.0, 70.0, 5.0)), QUICK, QUICK),  # a slow server that became slower meanwhile
        experiment(SLOW, QUICK, QUICK, QUICK),  # one connection alone never waited
    ],
)
def test_what_the_experiment_contradicts_is_not_named(other: Experiment) -> None:
    assert not is_confirmed(other)
    assert suspected_finding(seen(STALLED), other) is None


def test_a_suspicion_without_its_experiment_is_told_as_one() -> None:
    finding = suspected_finding(seen(STALLED), None)
    assert finding is not None
    assert (finding.confidence, finding.confidence_reason) == ("medium", "experiment-not-made")
    assert "two small writes" not in findings.explanation_for(finding)


def test_what_is_not_suspected_is_not_named_whatever_an_experiment_says() -> None:
    assert suspected_finding(seen(QUICK), PROVEN) is None
