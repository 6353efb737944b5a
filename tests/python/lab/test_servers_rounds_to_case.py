"""Conversion of rounds to a case: adds counts, merges histograms for percentiles, pairs ratios by round."""

from __future__ import annotations

import math
import random
from typing import cast

import pytest
import scipy.stats

from mcpace.lab.load import merge
from mcpace.lab.load.engine_outcome import (
    Connections,
    Engine,
    Histogram,
    OperationOutcome,
    Outcome,
    Second,
)
from mcpace.lab.load.plan import Closed, HttpTarget, LoadPlan, Operation
from mcpace.lab.servers import rounds_to_case
from mcpace.lab.servers.server_under_test import Conditions, Round, ServerUnderTest
from mcpace.lab.statistics.paired_ratio import paired_ratio
from mcpace.report.model.run import Run, Subject

PLAN = LoadPlan(
    target=HttpTarget(url=""), revision="2025-06-18", model=Closed(vus=2), duration_s=1, warm_up_s=1, timeout_s=1,
    operations=[Operation(name="echo", kind="call", tool="echo", arguments={"text": "hi"})],
)  # fmt: skip


def histogram(milliseconds: list[int]) -> Histogram:
    ordered = sorted(milliseconds)
    bounds = [ms * 1_000_000 for ms in ordered]

    def at(share: float) -> float:
        return ordered[max(math.ceil(share * len(ordered)), 1) - 1] / 1e3

    return Histogram(
        count=len(ordered), mean_s=sum(ordered) / len(ordered) / 1e3, min_s=ordered[0] / 1e3, max_s=ordered[-1] / 1e3,
        p50_s=at(0.5), p90_s=at(0.9), p99_s=at(0.99), p999_s=at(0.999),
        buckets=[(bound, bounds.count(bound)) for bound in dict.fromkeys(bounds)],
    )  # fmt: skip


def outcome(milliseconds: list[int], *, failed: int = 0, measured_s: float = 2.0, ended: str = "done") -> Outcome:
    told = histogram(milliseconds)
    call = OperationOutcome(
        name="echo", kind="call", count=told.count + failed, ok=told.count, latency=told, service=told,
        errors={"timeout": failed, "reset": 0}, first_error="late" if failed else None,
    )  # fmt: skip
    begin = OperationOutcome(
        name="initialize",
        kind="initialize",
        count=2,
        ok=2,
        errors={},
        latency=histogram([9, 9]),
        service=histogram([9]),
    )
    return Outcome(
        ended=ended, started_ns=0, elapsed_s=measured_s + 1, measured_s=measured_s, intended=told.count,
        begun=told.count, dropped=0, late=0, unfinished=0, operations=[begin, call],
        connections=Connections(opened=2, reused_requests=told.count), seconds=[Second(at_s=0, warm_up=True, ok=10)],
        engine=Engine(threads=1, cpu_s=0.5, busy=0.25, late_p99_s=0.001, saturated=False),
    )  # fmt: skip


def stand(*rounds: Round, sdk: str = "ours") -> ServerUnderTest:
    # Folding looks at no conditions.
    return ServerUnderTest(Subject(sdk=sdk, mode="json"), cast("Conditions", None), rounds=list(rounds))


def test_several_rounds_are_one_distribution() -> None:
    dice = random.Random(3)
    parts = [[dice.randint(1, 80) for _ in range(number)] for number in (50, 400, 7)]
    together = merge.merge_outcomes(outcome(part) for part in parts)
    expected = histogram([ms for part in parts for ms in part])
    call = next(one for one in together.operations if one.name == "echo")
    assert call.latency.buckets == expected.buckets
    for name in ("count", "mean_s", "min_s", "p50_s", "p90_s", "p99_s", "p999_s", "max_s"):
        assert getattr(call.latency, name) == pytest.approx(getattr(expected, name)), name
    assert (together.measured_s, together.connections.opened, len(together.seconds)) == (6.0, 6, 3)
    assert together.seconds[1].at_s == 3.0


def test_errors_are_counted_apart_and_kept() -> None:
    told = rounds_to_case.server_case(stand(Round(outcome([1, 2], failed=3), 0.5, 100)), "workload:echo", PLAN)
    assert told.errors == 3
    assert told.throughput_rps == 1.0
    assert told.by_tool is not None
    assert told.by_tool["echo"].errors == {"timeout": 3}
    assert told.latency_s is not None
    assert told.latency_s.count == 2
    assert told.load is not None
    assert list(told.load.others) == ["initialize"]


def test_processor_time_is_shared_by_the_warm_up_calls_too() -> None:
    told = rounds_to_case.server_case(
        stand(Round(outcome([1] * 10), 0.4, 100), Round(outcome([1] * 30), 0.6, 300)), "workload:echo", PLAN
    )
    assert told.server is not None
    assert told.server.cpu_s_per_call == pytest.approx(1.0 / 60)
    assert told.cpu_s == pytest.approx(40 / 60)
    assert told.rss_bytes == 300
    assert [one.cpu_s_per_call for one in told.server.rounds] == pytest.approx([0.4 / 20, 0.6 / 40])


def test_a_server_that_never_ran_is_a_case_with_its_error() -> None:
    broken = stand()
    broken.error = "it could not be built"
    told = rounds_to_case.server_case(broken, "workload:echo", PLAN)
    assert (told.error, told.throughput_rps) == ("it could not be built", None)
    again = Run.model_validate({**RUN, "cases": [told.model_dump(by_alias=True)]})
    assert again.cases[0].error == told.error


def test_what_one_round_lost_is_not_lost_in_the_whole() -> None:
    parts = merge.merge_outcomes([outcome([1]), outcome([1], ended="failed"), outcome([1], ended="stopped")])
    assert parts.ended == "failed"


RUN = {
    "schema": "mcpace.run/1", "kind": "servers", "started": "", "mcpace": "0",
    "machine": {"system": "", "architecture": "", "cpu": "", "cores": 1, "memory_bytes": 1, "python": ""},
}  # fmt: skip


def test_ratios_are_paired_by_round_whatever_the_machine_did() -> None:
    found = paired_ratio([200, 100, 50], [100, 50, 25])
    assert found is not None
    ratio, low, high, rounds = found
    assert (ratio, rounds) == (pytest.approx(2.0), 3)
    assert low == pytest.approx(2.0)
    assert high == pytest.approx(2.0)


def test_the_interval_is_students_over_logarithms() -> None:
    ours, theirs = [110.0, 95.0, 130.0, 101.0], [52.0, 50.0, 61.0, 49.0]
    logs = [math.log(one / other) for one, other in zip(ours, theirs, strict=True)]
    expected = scipy.stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    found = paired_ratio(ours, theirs)
    assert found is not None
    assert found[1:3] == pytest.approx((math.exp(expected.low), math.exp(expected.high)), rel=1e-6)


def test_rounds_in_which_nothing_happened_say_nothing() -> None:
    assert paired_ratio([0.0, 4.0], [1.0, 2.0]) == (pytest.approx(2.0), None, None, 1)
    assert paired_ratio([0.0], [1.0]) is None
    assert paired_ratio([], []) is None


def test_of_equal_servers_one_in_twenty_is_called_different() -> None:
    dice, called = random.Random(11), 0
    for _ in range(400):
        ours, theirs = ([dice.lognormvariate(7, 0.1) for _ in range(3)] for _ in range(2))
        found = paired_ratio(ours, theirs)
        assert found is not None
        assert found[1] is not None
        assert found[2] is not None
        called += not found[1] <= 1 <= found[2]
    assert called <= 32, "5 % of 400, and the chance of more is one in a thousand"
