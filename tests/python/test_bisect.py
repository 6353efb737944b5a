"""The search of ``mcpace bisect``, without running anything."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpace.lab import bisect
from mcpace.lab.bisect import Criterion, Inconclusive, _criterion, run, search
from mcpace.lab.errors import UsageProblem
from mcpace.lab.plan import Settings
from mcpace.lab.progress import Silent
from mcpace.lab.targets import parse
from mcpace.report.run import Probe


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
    outcome = search(order, judge(kinds, asked))
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
    search(order, judge({v: "good" if int(v) < change else "bad" for v in order}, asked))
    assert len(set(asked)) <= math.ceil(math.log2(count)) + 1


def probe(version: str, findings: list[str], **medians: float) -> Probe:
    return Probe(version=version, verdict="good", reason="", medians_s=medians, findings=findings)


def test_findings_tell_ends_apart_before_time_does() -> None:
    criterion = _criterion(probe("1", ["a"], call=1.0), probe("2", ["a", "b"], call=9.0))
    assert criterion == Criterion(findings=frozenset({"b"}))
    assert criterion.verdict(probe("3", ["b"], call=1.0))
    assert not criterion.verdict(probe("3", ["a"], call=9.0))


def test_time_tells_them_apart_where_findings_do_not() -> None:
    criterion = _criterion(probe("1", [], call=1.0, list=1.0), probe("2", [], call=4.0, list=1.1))
    assert (criterion.operation, criterion.threshold_s) == ("call", 2.0)
    assert criterion.verdict(probe("3", [], call=2.5))
    assert not criterion.verdict(probe("3", [], call=1.5))


def test_ends_that_behave_alike_are_refused() -> None:
    with pytest.raises(UsageProblem, match="behave alike"):
        _criterion(probe("1", [], call=1.0), probe("2", [], call=1.9))


def test_measurements_survive_a_search_that_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two releases that behave alike here: the figures that say so are handed over with the reason."""
    # However noisy the machine: no ratio of two healthy releases is that large.
    monkeypatch.setattr(bisect, "CLEAR_RATIO", 1e6)
    settings = Settings(trials=1)
    with pytest.raises(Inconclusive, match="behave alike") as caught:
        run("python", "1.13.1", "1.14.0", parse("profile:simple"), settings, Silent())
    assert caught.value.reason.exit_code == 2
    assert len(caught.value.run.cases) == 6
