"""The search of ``mcpace bisect``, without running releases."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpace.lab.clients.plan import Settings
from mcpace.lab.clients.run_clients import Ready
from mcpace.lab.compare import bisect
from mcpace.lab.compare.bisect import Criterion, Inconclusive, _select_criterion, _summarize_cases, binary_search, run
from mcpace.lab.environments.registries.release import Release
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.progress import Silent
from mcpace.lab.targets import parse_target
from mcpace.report.model.run import Case, Operation, Probe, Subject, Summary
from mcpace.report.verdict import verdict


def judge(kinds: dict[str, str], asked: list[str]):
    def ask(version: str) -> Probe:
        asked.append(version)
        return Probe(version=version, verdict=kinds[version], reason="")

    return ask


@given(st.data())
def test_finds_the_change_around_untestable_releases(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 60))
    change = data.draw(st.integers(1, count - 1))
    order = [f"1.{n}" for n in range(count)]
    kinds = {v: "good" if n < change else "bad" for n, v in enumerate(order)}
    for index in data.draw(st.sets(st.integers(1, count - 1))) - {count - 1}:
        kinds[order[index]] = "untestable"
    asked: list[str] = []
    outcome = binary_search(order, judge(kinds, asked))
    testable_bad = [v for v in order if kinds[v] == "bad"]
    testable_good = [v for v in order if kinds[v] == "good"]
    assert outcome.changed == testable_bad[0]
    assert outcome.neighbour == testable_good[-1]
    between = order[order.index(outcome.neighbour) + 1 : order.index(outcome.changed)]
    assert outcome.untestable == between


@given(st.integers(2, 500), st.data())
def test_asks_about_log2_of_the_releases(count: int, data: st.DataObject) -> None:
    change = data.draw(st.integers(1, count - 1))
    order = [str(n) for n in range(count)]
    asked: list[str] = []
    binary_search(order, judge({v: "good" if int(v) < change else "bad" for v in order}, asked))
    assert len(set(asked)) <= math.ceil(math.log2(count)) + 1


def probe(version: str, findings: list[str], **medians: float) -> Probe:
    return Probe(version=version, verdict="good", reason="", medians_s=medians, findings=findings)


def test_findings_tell_ends_apart_before_time_does() -> None:
    criterion = _select_criterion(probe("1", ["a"], call=1.0), probe("2", ["a", "b"], call=9.0))
    assert criterion == Criterion(findings=frozenset({"b"}))
    assert criterion.verdict(probe("3", ["b"], call=1.0)) == "bad"
    assert criterion.verdict(probe("3", ["a"], call=9.0)) == "good"


def test_time_tells_them_apart_where_findings_do_not() -> None:
    criterion = _select_criterion(probe("1", [], call=1.0, list=1.0), probe("2", [], call=4.0, list=1.1))
    assert (criterion.operation, criterion.threshold_s) == ("call", 2.0)
    assert criterion.verdict(probe("3", [], call=2.5)) == "bad"
    assert criterion.verdict(probe("3", [], call=1.5)) == "good"


def test_ends_that_behave_alike_are_refused() -> None:
    with pytest.raises(UsageProblem, match="behave alike"):
        _select_criterion(probe("1", [], call=1.0), probe("2", [], call=1.9))


def case(operation: Operation, good: int, failed: int) -> Case:
    seconds, failures = [0.01] * good, [f"{operation}: timed out"] * failed
    return Case(
        subject=Subject(sdk="python", version="2"),
        target="t",
        operation=operation,
        trials_s=seconds,
        summary=Summary.of(seconds) if seconds else None,
        failures=failures,
        error=failures[0] if failures else None,
    )


def test_a_failed_trial_among_many_leaves_a_release_testable() -> None:
    probe = _summarize_cases("2", [case("connect", 10, 0), case("call", 9, 1)])
    assert (probe.verdict, probe.failed) == ("good", {"connect": 0.0, "call": 0.1})
    assert "1 of 10 failed: call: timed out" in probe.reason
    assert Criterion(operation="call", threshold_s=1.0).verdict(probe) == "good"
    mostly = _summarize_cases("2", [case("connect", 10, 0), case("call", 4, 6)])
    assert Criterion(operation="call", threshold_s=1.0).verdict(mostly) == "untestable"
    assert Criterion(findings=frozenset({"b"})).verdict(mostly) == "untestable"


def test_what_could_not_be_tried_is_untestable() -> None:
    nothing = case("connect", 0, 0).model_copy(update={"error": "it doesn't import"})
    assert (_summarize_cases("2", [nothing]).verdict, _summarize_cases("2", [nothing]).reason) == (
        "untestable",
        "it doesn't import",
    )
    old = case("call", 0, 0).model_copy(update={"unsupported": "no such mode"})
    assert _summarize_cases("2", [case("connect", 3, 0), old]).verdict == "untestable"


def test_a_release_that_fails_or_hangs_can_be_searched_for() -> None:
    good, bad = (
        _summarize_cases(v, [case("connect", 3, 0), case("call", *ended)])
        for v, ended in (("1", (3, 0)), ("3", (0, 3)))
    )
    criterion = _select_criterion(good, bad)
    assert (criterion.operation, criterion.failing) == ("call", 0.5)
    assert criterion.describe() == "bad fails in more than 50% of its attempts to call"
    assert criterion.verdict(_summarize_cases("2", [case("connect", 3, 0), case("call", 1, 2)])) == "bad"
    assert criterion.verdict(_summarize_cases("2", [case("connect", 3, 0), case("call", 2, 1)])) == "good"
    # It fails before it comes to that: another trouble.
    assert criterion.verdict(_summarize_cases("2", [case("connect", 0, 2), case("call", 0, 0)])) == "untestable"


def test_the_search_goes_on_through_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten releases: calls hang from the seventh on, and the fourth can't connect, for another reason."""
    versions = [f"1.{minor}.0" for minor in range(10)]
    tried = []

    def cases(version: str) -> list[Case]:
        tried.append(version)
        minor = versions.index(version)
        connects = case("connect", 0, 2) if minor == 4 else case("connect", 3, 0)
        return [connects, case("call", 0, 0) if minor == 4 else case("call", 0, 3) if minor > 6 else case("call", 3, 0)]

    class FakeTargetRun:
        def __init__(self, ready: list[Ready], *_: object) -> None:
            self._version = ready[0].subject.version or ""

        def __enter__(self) -> FakeTargetRun:
            return self

        def __exit__(self, *_: object) -> None: ...
        def run_rounds(self, progress: object) -> None: ...
        def cases(self) -> list[Case]:
            return cases(self._version)

    between = [Release(version, None) for version in versions]
    monkeypatch.setattr(bisect, "TargetRun", FakeTargetRun)
    monkeypatch.setattr(bisect, "prepare", lambda one, _: Ready(Subject(sdk="python", version=one.version)))
    monkeypatch.setattr(bisect.releases, "releases_between", lambda *_: between)
    told = run("python", "1.0.0", "1.9.0", parse_target("profile:simple"), Settings(), Silent())
    assert told.first_bad == "1.7.0"
    assert told.untestable == []
    assert told.bisection is not None
    assert {probe.version: probe.verdict for probe in told.bisection.probes}["1.4.0"] == "untestable"
    assert "100\N{NO-BREAK SPACE}% of the attempts to call fail, against 0\N{NO-BREAK SPACE}% in 1.6.0" in verdict(told)


def test_an_end_that_fails_here_and_there_is_no_end() -> None:
    with pytest.raises(LabError, match=r"can't be measured: call 0\.01 s, 6 of 10 failed"):
        _select_criterion(_summarize_cases("1", [case("call", 8, 2)]), _summarize_cases("2", [case("call", 4, 6)]))


def test_measurements_survive_a_search_that_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two releases behave alike: the error comes with the measurements."""
    # However noisy the machine: no ratio of two healthy releases is that large.
    monkeypatch.setattr(bisect, "CLEAR_RATIO", 1e6)
    settings = Settings(trials=1)
    with pytest.raises(Inconclusive, match="behave alike") as caught:
        run("python", "1.13.1", "1.14.0", parse_target("profile:simple"), settings, Silent())
    assert caught.value.reason.exit_code == 2
    assert len(caught.value.run.cases) == 6
