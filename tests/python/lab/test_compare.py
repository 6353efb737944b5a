"""Comparison of two runs, and the verdict of a gate."""

from __future__ import annotations

import http.server
import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from mcpace.cli import output
from mcpace.lab.compare import comparison as lab
from mcpace.lab.compare.gate import run_of_files
from mcpace.report.ci.junit import junit
from mcpace.report.ci.markdown import markdown
from mcpace.report.model.comparison import Compared
from mcpace.report.model.load import Latencies, LoadOperation, LoadSecond
from mcpace.report.model.recording import RecordingFacts
from mcpace.report.model.run import Case, Finding, Machine, Run, Subject
from mcpace.report.page.build import page_of
from mcpace.report.terminal import print_run
from mcpace.report.verdict import sentences
from mcpace.report.words import comparison
from support import commands

MACHINE = Machine(system="Linux 6", architecture="x86_64", cpu="A", cores=2, memory_bytes=8 << 30, python="3.11")
CLIENTS = Path(__file__).parents[2] / "fixtures" / "runs" / "clients.json"
QUICK = [9.0, 1.0, 1.01, 0.99, 1.0, 1.02, 0.98]
SLOW = [9.0, 1.5, 1.51, 1.49, 1.5, 1.52, 1.48]


def case(trials: list[float], **more: Any) -> Case:
    whole = {"subject": Subject(sdk="mcpace-client"), "target": "t", "operation": "call", "tool": "echo"}
    return Case(**{**whole, "trials_s": trials, **more})


def run(*cases: Case, **more: Any) -> Run:
    whole = {"kind": "measure", "started": "2026-01-01T00:00:00Z", "machine": MACHINE, "mcpace": "0.1.0"}
    return Run(**{**whole, "cases": list(cases), **more})


def finding(code: str, severity: str = "high") -> Finding:
    return Finding.model_validate(
        {"code": code, "severity": severity, "confidence": "high", "cost_s": 1.0, "calls": 1, "of_calls": 1}
    )


def load(rates: list[int], *, errors: int = 0) -> Case:
    count = sum(rates)
    latency = Latencies(count=count, mean=0.01, min=0.001, p50=0.01, p90=0.02, p99=0.03, p999=0.04, max=0.05)
    told = LoadOperation(name="echo", kind="call", count=count + errors, ok=count, throughput_rps=count / len(rates))
    return case(
        [],
        throughput_rps=count / len(rates),
        errors=errors,
        latency_s=latency,
        by_tool={"echo": told},
        seconds=[
            LoadSecond(at_s=at, warm_up=at == 0, users=1, intended=rate, ok=rate, errors=0, p50_s=0.01, p99_s=0.03)
            for at, rate in enumerate(rates)
        ],
    )


def only(found: list[Compared], metric: str) -> Compared:
    [row] = [row for row in found if row.metric == metric]
    return row


def test_a_slower_call_is_worse_with_an_interval_and_what_would_have_been_seen() -> None:
    made = lab.compare_runs(run(case(QUICK)), run(case(SLOW)), 0.1)
    row = only(made.attempts[0].rows, "time")
    assert (row.base, row.now) == (1.0, 1.5)
    assert row.low is not None and row.high is not None and row.sees is not None
    assert 1.4 < row.low <= 1.5 <= row.high < 1.6
    assert 1 < row.sees < 1.1
    assert (row.verdict, row.breach, row.base_count, row.now_count) == ("worse", True, 6, 6)
    assert (made.red, made.reasons) == (True, ["slower"])


def test_what_goes_wrong_at_another_tool_each_time_is_not_red() -> None:
    broken, well = {"failures": ["call: boom"], "error": "call: boom"}, {"summary": None}
    base = [case(QUICK, tool="one"), case(QUICK, tool="two")]

    def attempts(first: Any, second: Any) -> list[Any]:
        sides = ([first, case(QUICK, tool="two")], [case(QUICK, tool="one"), second])
        return [lab.compare_pairs(list(zip(base, side, strict=True)), [], [], 0.1).attempts[0] for side in sides]

    for spoilt in (
        {"trials": [], **broken},
        {"trials": QUICK, **well, "findings": [finding("hidden-listing")]},
    ):
        made = lab.compare_runs(run(*base), run(*base), 0.1)
        made.attempts = attempts(case(**spoilt, tool="one"), case(**spoilt, tool="two"))
        assert [bool(one.broken or one.new_findings) for one in made.attempts] == [True, True]
        lab.set_verdict(made)
        assert (made.red, made.reasons) == (False, [])
        made.attempts[1] = made.attempts[0]
        lab.set_verdict(made)
        assert made.red


REFUSED = {"trials": [], "failures": ["connect: refused"], "error": "connect: refused"}


def of_attempts(base: list[Case], *sides: list[Case]) -> Run:
    """Returns a gate's run with these second sides, one for each attempt."""
    result = run(*sides[-1], kind="gate")
    for side in sides:
        made = lab.compare_pairs(*lab.match_cases(base, side), 0.1)
        before = result.comparison.attempts if result.comparison else []
        result.comparison = made.model_copy(update={"attempts": [*before, *made.attempts]})
    assert result.comparison is not None
    lab.set_verdict(result.comparison)
    return result


@pytest.mark.parametrize(
    ("first", "second", "reason", "says"),
    [
        ({"trials": SLOW}, REFUSED, "broken", "fails where the first side worked"),
        (REFUSED, {"trials": SLOW}, "slower", "is slower than the tolerance allows"),
        (REFUSED, {"trials": QUICK, "findings": [finding("hidden-listing")]}, "new-finding", "shows a cause of lost"),
        ({"trials": SLOW}, {"trials": QUICK, "findings": [finding("hidden-listing")]}, "new-finding", "shows a cause"),
        ({"trials": QUICK, "findings": [finding("hidden-listing")]}, REFUSED, "broken", "fails where"),
    ],
)
def test_what_goes_wrong_in_another_way_each_time_is_red(first: Any, second: Any, reason: str, says: str) -> None:
    made = of_attempts([case(QUICK)], [case(**first)], [case(**second)])
    assert made.comparison is not None
    assert (made.comparison.red, made.comparison.judged, made.comparison.reasons) == (True, True, [reason])
    assert sentences(made)[0].startswith(f"Failed, measured twice: the second side {says}")
    text = markdown(made)
    assert "Gate: failed" in text and says in text
    assert int(ElementTree.fromstring(junit(made)).get("failures") or 0) >= 1


CONNECT: dict[str, Any] = {"operation": "connect", "tool": None}
DYING = {"trials": QUICK, "failures": ["connect: refused"] * 2, "error": "connect: refused", "given_up": True}


@pytest.mark.parametrize(
    "gone",
    [
        [case(**REFUSED, **CONNECT)],
        [case(**DYING, **CONNECT), case(QUICK, tool="one"), case(QUICK, tool="two")],
    ],
)
def test_a_side_that_is_gone_is_wrong_wherever_else_it_went_wrong(gone: list[Case]) -> None:
    base = [case(QUICK, **CONNECT), case(QUICK, tool="one"), case(QUICK, tool="two")]
    slow = [case(QUICK, **CONNECT), case(SLOW, tool="one"), case(QUICK, tool="two")]
    after = of_attempts(base, slow, gone)
    assert after.comparison is not None
    assert (after.comparison.red, after.comparison.reasons) == (True, ["broken"])
    assert "connect fails now: connect: refused" in " ".join(sentences(after))
    assert "connect: refused" in junit(after)
    before = of_attempts(base, gone, slow)
    assert before.comparison is not None
    assert (before.comparison.red, before.comparison.reasons) == (True, ["slower"])
    # Well at the second attempt: whatever it was, it's gone.
    passed = of_attempts(base, gone, base)
    assert passed.comparison is not None and not passed.comparison.red


@pytest.mark.parametrize(
    "second", [{"trials": [], "error": "call: boom", "failures": ["call: boom"]}, {"findings": [finding("stall")]}]
)
def test_slow_at_one_tool_and_wrong_at_another_is_not_red(second: Any) -> None:
    base = [case(QUICK, **CONNECT), case(QUICK, tool="one"), case(QUICK, tool="two")]
    sides = [
        [case(QUICK, **CONNECT), case(SLOW, tool="one"), case(QUICK, tool="two")],
        [case(QUICK, **CONNECT), case(QUICK, tool="one"), case(**{"trials": QUICK, "tool": "two", **second})],
    ]
    for attempts in (sides, sides[::-1]):
        made = of_attempts(base, *attempts)
        assert made.comparison is not None
        assert (made.comparison.red, made.comparison.reasons) == (False, [])
        # The command leaves with 0, and a CI reads no failure out of the file.
        assert judged_in_junit(made) == ("0", "0")


def judged_in_junit(made: Run) -> tuple[str | None, str | None]:
    """Numbers of failures and errors in the JUnit report."""
    whole = ElementTree.fromstring(junit(made))
    assert whole.get("failures") == str(len(list(whole.iter("failure"))))
    assert whole.get("errors") == str(len(list(whole.iter("error"))))
    return whole.get("failures"), whole.get("errors")


def test_a_gate_that_has_not_judged_is_an_error_to_a_ci_and_neither_passed_nor_failed() -> None:
    for made in (
        run_of_files(run(case(QUICK)), run(case(SLOW), partial=True), 0.1),
        run_of_files(run(case(QUICK[:3])), run(case(SLOW[:3])), 0.1),
    ):
        assert judged_in_junit(made) == ("0", "1")
        assert "Gate: not judged" in markdown(made)
    assert judged_in_junit(run_of_files(run(case(QUICK)), run(case(SLOW)), 0.1)) == ("1", "0")
    assert judged_in_junit(run_of_files(run(case(QUICK)), run(case(QUICK)), 0.1)) == ("0", "0")


def test_what_was_slow_and_then_not_even_asked_for_is_red_though_the_sides_have_names_of_their_own() -> None:
    """Where listing fails, no call is made: the second side has no case that names the place."""
    listing: dict[str, Any] = {"operation": "list", "tool": None}
    base = [case(QUICK, target="a", **one) for one in (CONNECT, listing, {})]
    slow = [case(QUICK, target="b", **CONNECT), case(QUICK, target="b", **listing), case(SLOW, target="b")]
    made = of_attempts(base, slow, [case(QUICK, target="b", **CONNECT), case(**REFUSED, target="b", **listing)])
    assert made.comparison is not None
    assert (made.comparison.red, made.comparison.reasons) == (True, ["broken"])
    assert [(one.target, one.operation) for one in made.comparison.attempts[1].broken] == [("b", "call"), ("b", "list")]


def test_what_went_wrong_once_is_no_reason_beside_what_did_twice() -> None:
    noisy = [case(SLOW, findings=[finding("hidden-listing")])]
    made = of_attempts([case(QUICK)], [case(SLOW)], noisy)
    assert made.comparison is not None and made.comparison.reasons == ["slower"]


@pytest.mark.parametrize(("trials", "says"), [(QUICK, "nothing was seen to be worse"), (SLOW, "looks worse")])
def test_an_interrupted_gate_has_neither_passed_nor_failed(trials: list[float], says: str) -> None:
    made = run_of_files(run(case(QUICK)), run(case(trials), partial=True), 0.1)
    [first, *rest] = sentences(made)
    assert first.startswith("Not judged: it was interrupted")
    assert says in first and not any("--trials" in one for one in rest)


DOUBTFUL = [9.0, 1.3, 0.9, 1.9, 1.25, 1.0, 1.6]
"""1.3 times QUICK, with an interval that holds 1."""


def test_a_figure_past_the_tolerance_whose_interval_is_wide_is_inconclusive() -> None:
    made = of_attempts([case(QUICK)], [case(DOUBTFUL)], [case(DOUBTFUL)])
    assert made.comparison is not None
    row = only(made.comparison.attempts[-1].rows, "time")
    assert row.ratio and row.low and row.ratio > 1.1 > row.low and not row.breach
    assert (made.comparison.red, made.comparison.inconclusive, made.comparison.judged) == (False, True, True)
    [first, second, *_] = sentences(made)
    assert first.startswith("Inconclusive: time of call echo, 1.") and "the interval is too wide" in first
    assert second.startswith("More --trials")
    assert "Gate: inconclusive" in markdown(made)
    assert judged_in_junit(made) == ("0", "1")
    assert output._exit_code(made, []) == 4
    again = Run.from_json(made.to_json())
    assert again.comparison is not None and again.comparison.inconclusive


def test_a_figure_that_looked_worse_once_passes() -> None:
    made = of_attempts([case(QUICK)], [case(DOUBTFUL)], [case(QUICK)])
    assert made.comparison is not None and not made.comparison.inconclusive
    assert sentences(made)[0].startswith("Passed after a second measurement")
    assert output._exit_code(made, []) == 0


def test_a_gate_that_passes_says_how_blind_it_was() -> None:
    noisy = [9.0, 1.0, 4.0, 2.0, 0.5, 3.0, 1.5]
    blind = of_attempts([case(noisy)], [case(noisy)])
    assert sentences(blind)[0] == "Passed: nothing was seen to be worse by more than 10\N{NO-BREAK SPACE}%."
    assert sentences(blind)[1].startswith("No difference was seen. Smallest detectable change: ")
    assert sentences(blind)[2] == "More --trials, or a quieter machine, show smaller ones."
    partly = of_attempts([case(noisy), case(SLOW, tool="b")], [case(noisy), case(QUICK, tool="b")])
    assert any(one.startswith("Some figures show only changes of ") for one in sentences(partly))
    sharp = of_attempts([case(QUICK)], [case(QUICK)])
    assert len(sentences(sharp)) == 2
    # Saved runs can't be given more trials.
    assert len(sentences(run_of_files(run(case(noisy)), run(case(noisy)), 0.1))) == 2


def test_what_all_have_in_common_is_said_once() -> None:
    subjects = [Subject(sdk="python", version=one) for one in ("1.30.0", "2.3.0")]
    sides = [
        run(*(case(trials, subject=subject, operation=one, tool=None) for one in ("list", "connect")))
        for subject, trials in zip(subjects, (QUICK, SLOW), strict=True)
    ]
    [worse] = sentences(lab.run_of(*sides, 0.1))
    assert worse.startswith("Worse at t, python@2.3.0 against python@1.30.0: time of list, 1.50× (")
    assert worse.count("python@2.3.0") == 1 and "; time of connect, 1.50× (" in worse
    elsewhere = [run(*one.cases, case(trials, target="u")) for one, trials in zip(sides, (QUICK, SLOW), strict=True)]
    assert "time of mcpace-client · u · call echo, " in sentences(lab.run_of(*elsewhere, 0.1))[0]


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_has_room_for_every_verdict(width: int) -> None:
    loads = lab.run_of(run(load([100] * 60)), run(load([100] * 24 + [0] * 2 + [100] * 34)), 0.1)
    times = lab.run_of(run(case(QUICK), case(QUICK, tool="b")), run(case(SLOW), case(SLOW, tool="b")), 0.9)
    for made, rows in ((loads, ("standstill", "throughput")), (times, ("call echo", "call b"))):
        shown = [line.plain for line in print_run.lines(made, width, coloured=False)]
        assert all(len(line) <= width for line in shown)
        for row in rows:
            [found] = [line for line in shown if line.startswith(f"  {row} ")]
            assert "…" not in found
        # One table: the places of times differ by their operation alone.
        assert sum("first" in line and "second" in line and "ratio" in line for line in shown) == 1
    assert any(line.endswith("worse (allowed)") for line in shown)


def test_a_gate_measures_as_measure_does(tmp_path: Path) -> None:
    saved_run = commands.run("measure", "profile:simple", "--trials", 5, "--out", "base.json", folder=tmp_path)
    assert saved_run.code == 0, saved_run.stderr
    ended = commands.run(
        *("gate", "profile:simple", "--baseline", "base.json", "--trials", 5, "--tolerance", "900%"),
        *("--out", "now.json"),
        folder=tmp_path,
    )
    assert ended.code == 0, ended.stderr
    made = Run.load(tmp_path / "now.json").comparison
    assert made is not None and made.warnings == ["not-interleaved"]
    assert "other-kind" in lab.compare_runs(run(case(QUICK), kind="load"), run(case(QUICK), kind="gate"), 0.1).warnings


def test_lengths_of_recordings_are_no_options() -> None:
    sides = [
        run(case(QUICK), kind="recording", options={"recording": name}, recording=RecordingFacts(events=count))
        for name, count in (("a", 9), ("b", 99))
    ]
    assert "other-options" not in lab.compare_runs(*sides, 0.1).warnings


def test_the_same_twice_is_the_same_and_a_tolerance_lets_pass() -> None:
    same = lab.compare_runs(run(case(QUICK)), run(case(QUICK)), 0.1)
    assert only(same.attempts[0].rows, "time").verdict == "same"
    assert not same.red
    allowed = lab.compare_runs(run(case(QUICK)), run(case(SLOW)), 0.6)
    row = only(allowed.attempts[0].rows, "time")
    assert (row.verdict, row.breach, allowed.red) == ("worse", False, False)
    better = lab.compare_runs(run(case(SLOW)), run(case(QUICK)), 0.1)
    assert (only(better.attempts[0].rows, "time").verdict, better.red) == ("better", False)


def test_too_few_trials_say_nothing() -> None:
    made = lab.compare_runs(run(case([9.0, 1.0, 1.0])), run(case([9.0, 5.0, 5.0])), 0.1)
    row = only(made.attempts[0].rows, "time")
    assert (row.ratio, row.low, row.verdict, made.red) == (5.0, None, "unclear", False)
    assert comparison.verdict_words(row) == "too few"


def test_cases_find_their_partner_across_releases_and_targets_and_no_other() -> None:
    old = [case(QUICK, subject=Subject(sdk="python", version="1.12.0"), operation=one) for one in ("list", "call")]
    new = [case(QUICK, subject=Subject(sdk="python", version="1.13.0"), operation=one) for one in ("call", "list")]
    pairs, only_base, only_now = lab.match_cases(old, new)
    assert [(then.operation, now.operation) for then, now in pairs] == [("call", "call"), ("list", "list")]
    assert not only_base and not only_now
    pairs, _, _ = lab.match_cases([case(QUICK, target="a")], [case(QUICK, target="b")])
    assert len(pairs) == 1
    # Two that could be meant are none.
    pairs, only_base, only_now = lab.match_cases(
        [case(QUICK, target="a")], [case(QUICK, target="b"), case(QUICK, target="c")]
    )
    assert (len(pairs), len(only_base), len(only_now)) == (0, 1, 2)


def test_what_only_one_side_has_is_told() -> None:
    made = lab.compare_runs(run(case(QUICK), case(QUICK, operation="list", tool=None)), run(case(QUICK)), 0.1)
    assert [one.operation for one in made.only_base] == ["list"]
    assert comparison.left_out(made) == ["Only on the first side: mcpace-client · t · list."]


def test_of_runs_with_nothing_in_common_neither_has_lost_anything() -> None:
    load_of_servers = case(QUICK, subject=Subject(sdk="go"), target="workload:echo")
    base, now = run(case(QUICK)), run(load_of_servers, kind="servers")
    assert "The two have no figure in common." in sentences(lab.run_of(base, now, 0.1))
    judged = run_of_files(base, now, 0.1)
    assert judged.comparison is not None
    assert (judged.comparison.red, judged.comparison.judged) == (False, False)
    assert not any("fails" in sentence for sentence in sentences(judged))
    # One that did nothing at all has lost everything.
    gone = run_of_files(base, run(case([], error="boom", subject=Subject(sdk="go"), target="workload:echo")), 0.1)
    assert gone.comparison is not None and gone.comparison.red


def test_what_works_no_more_is_red() -> None:
    made = lab.compare_runs(run(case(QUICK)), run(case([], error="HTTP 500")), 0.1)
    assert (made.red, made.reasons) == (True, ["broken"])
    assert made.attempts[0].broken[0].error == "HTTP 500"


@pytest.mark.parametrize(("severity", "red"), [("high", True), ("medium", True), ("low", False)])
def test_a_new_cause_of_lost_time_is_red_where_it_matters(severity: str, red: bool) -> None:
    made = lab.compare_runs(run(case(QUICK)), run(case(QUICK, findings=[finding("hidden-listing", severity)])), 0.1)
    assert made.red is red
    gone = lab.compare_runs(run(case(QUICK, findings=[finding("hidden-listing")])), run(case(QUICK)), 0.1)
    assert not gone.red and gone.attempts[0].gone_findings


def test_only_what_goes_wrong_twice_makes_a_gate_red() -> None:
    slow, fine = (lab.compare_runs(run(case(QUICK)), run(case(trials)), 0.1) for trials in (SLOW, QUICK))
    twice = slow.model_copy(update={"attempts": [slow.attempts[0], slow.attempts[0]]})
    lab.set_verdict(twice)
    once = slow.model_copy(update={"attempts": [slow.attempts[0], fine.attempts[0]]})
    lab.set_verdict(once)
    assert (twice.red, once.red) == (True, False)


def test_a_load_is_compared_by_its_seconds() -> None:
    steady = [1000 + place % 7 for place in range(40)]
    made = lab.compare_runs(run(load(steady)), run(load([rate // 2 for rate in steady])), 0.1)
    row = only(made.attempts[0].rows, "throughput")
    assert row.method == "bootstrap-t" and row.ratio == pytest.approx(0.5, abs=0.01)
    assert (row.verdict, row.breach) == ("worse", True)
    assert only(made.attempts[0].rows, "p50").verdict == "same"


def test_tokens_of_results_stand_beside_each_other_where_both_sides_have_them() -> None:
    steady = [1000] * 40

    def loaded(tokens: int | None) -> Case:
        made = load(steady)
        assert made.by_tool is not None
        made.by_tool["echo"].result_tokens = tokens
        return made

    for then, here in ((case(QUICK, result_tokens=80), case(QUICK, result_tokens=1_200)), (loaded(80), loaded(1_200))):
        page = page_of(lab.run_of(run(then), run(here), 0.1))
        [table] = page.tables
        assert (table.title, table.rows) == ("Tokens of results", [["echo", "80", "1,200", "15×"]])
    for unknown in (case(QUICK), loaded(None)):
        assert not lab.compare_runs(run(case(QUICK, result_tokens=80)), run(unknown), 0.1).results


@pytest.mark.parametrize(("now", "red"), [(0, False), (3, False), (4_000, True)])
def test_errors_are_red_where_chance_does_not_explain_them(now: int, red: bool) -> None:
    steady = [1000] * 40
    made = lab.compare_runs(run(load(steady)), run(load(steady, errors=now)), 0.1)
    assert only(made.attempts[0].rows, "errors").breach is red
    assert made.red is red


def test_runs_of_other_machines_and_options_are_compared_with_a_warning() -> None:
    other = MACHINE.model_copy(update={"cpu": "B"})
    made = lab.compare_runs(run(case(QUICK)), run(case(QUICK), machine=other, options={"trials": 9}), 0.1)
    assert {"other-machine", "other-options", "not-interleaved"} <= set(made.warnings)
    assert all(code in comparison.WARNINGS for code in made.warnings)


def test_a_comparison_names_the_machines_of_its_runs_and_not_its_own(tmp_path: Path) -> None:
    other = MACHINE.model_copy(update={"cpu": "B", "cores": 64, "system": "Linux 7"})
    sides = [run(case(QUICK)), run(case(QUICK), machine=other, started="2026-02-02T00:00:00Z", mcpace="0.0.9")]
    made = lab.run_of(*sides, 0.1, ("old.json", "new.json"))
    made.machine = MACHINE.model_copy(update={"cpu": "where it was compared"})
    page = page_of(made)
    told = {fact.name: fact.value for fact in page.setup}
    assert told["The first"] == "old.json: measure, 2026-01-01T00:00:00Z, mcpace 0.1.0"
    assert told["The second"] == "new.json: measure, 2026-02-02T00:00:00Z, mcpace 0.0.9"
    assert told["The first's machine"].startswith("A, 2 cores, 8")
    assert (told["The second's system"], told["The second's machine"][:11]) == ("Linux 7, Python 3.11", "B, 64 cores")
    assert "A, 2 cores" in page.head.machine and " against B, 64 cores" in page.head.machine
    assert page.comparison is not None
    assert "A, 2 cores" in page.comparison.first and "B, 64 cores" in page.comparison.second
    shown = " ".join(" ".join(line.plain for line in print_run.lines(made, 120, coloured=False)).split())
    for text in (shown, markdown(made), page.model_dump_json()):
        assert "where it was compared" not in text
        assert "new.json" in text.replace("\\", "")
    # Measurements of the comparison itself were made on this machine.
    here = of_attempts([case(QUICK)], [case(QUICK)])
    assert {"Machine", "System"} <= {fact.name for fact in page_of(here).setup}


def test_a_comparison_of_before_the_second_side_was_told_still_loads() -> None:
    made = lab.run_of(run(case(QUICK)), run(case(SLOW)), 0.1, ("old.json", "new.json"))
    old = json.loads(made.to_json())
    for name in ("architecture", "memory_bytes", "python"):
        del old["comparison"]["base"][name]
    del old["comparison"]["now"], old["comparison"]["unconfirmed"]
    page = page_of(Run.from_json(json.dumps(old)))
    assert page.comparison is not None and page.comparison.second == "new.json"
    told = {fact.name: fact.value for fact in page.setup}
    assert told["The first's machine"] == "A, 2 cores" and "Machine" in told


def test_names_stay_readable_in_the_markdown_of_a_log() -> None:
    made = run_of_files(run(case(QUICK, tool="my-tool (app_b.py) __init__")), run(case(SLOW, tool="other")), 0.1)
    assert r"my-tool (app_b.py) \_\_init\_\_" in markdown(made)


def test_the_files_for_a_ci_hold_every_figure_and_no_markup_of_a_peer() -> None:
    hostile = "<script>alert(1)</script>|`x`\n# y @org/team https://a.example www.a.example"
    made = run_of_files(run(case(QUICK, tool=hostile)), run(case(SLOW, tool=hostile)), 0.1)
    text = markdown(made)
    assert "Gate: failed" in text
    assert "<script>" not in text and "\n# y" not in text
    assert "://" not in text and "@o" not in text and not re.search(r"www\\?\.", text)
    assert re.search(r"\| time \|.*1\.5.*\| worse \|", text)
    document = ElementTree.fromstring(junit(made))
    [failure] = document.iter("failure")
    assert "1.50×" in str(failure.get("message"))
    assert document.get("failures") == "1"
    passed = run_of_files(run(case(QUICK)), run(case(QUICK)), 0.1)
    assert ElementTree.fromstring(junit(passed)).get("failures") == "0"
    assert sentences(passed)[0].startswith("Passed")


def test_a_server_that_fails_now_and_then_is_red_and_one_slip_is_not() -> None:
    good = case([1.0] * 20)
    failing = case([1.0] * 10, failures=["call: boom"] * 10, error="call: boom")
    made = lab.compare_runs(run(good), run(failing), 0.1)
    assert only(made.attempts[0].rows, "errors").breach and made.red
    slip = lab.compare_runs(run(good), run(case([1.0] * 19, failures=["call: boom"], error="call: boom")), 0.1)
    assert not slip.red
    few = lab.compare_runs(run(good), run(case([1.0], failures=["call: boom"] * 19, error="call: boom")), 0.1)
    assert few.red


def test_what_the_second_side_lost_is_red() -> None:
    made = lab.compare_runs(run(case(QUICK), case(QUICK, operation="list", tool=None)), run(case(QUICK)), 0.1)
    assert (made.red, made.reasons) == (True, ["broken"])


def test_a_server_that_dies_half_way_is_red_however_well_it_began() -> None:
    """Connecting is given up after two failures, which are too few for a significant share."""
    dead = {"failures": ["connect: refused"] * 2, "error": "connect: refused", "given_up": True}
    base, now = (case(QUICK * 3, operation="connect", tool=None), case(QUICK, operation="connect", tool=None, **dead))
    made = lab.compare_runs(run(base), run(now), 0.1)
    assert (made.red, made.reasons) == (True, ["broken"])
    assert made.attempts[0].rows
    assert not lab.compare_runs(run(now), run(now), 0.1).red


def test_a_gate_without_an_interval_has_judged_nothing() -> None:
    made = run_of_files(run(case([9.0, 1.0, 1.0])), run(case([9.0, 5.0, 5.0])), 0.1)
    assert made.comparison is not None
    assert (made.comparison.red, made.comparison.judged) == (False, False)
    assert sentences(made)[0].startswith("Nothing could be judged")


def test_a_load_that_stands_still_is_red_whatever_its_means_say() -> None:
    steady = [100] * 60
    stalled = [100] * 24 + [0] * 14 + [100] * 22
    made = lab.compare_runs(run(load(steady)), run(load(stalled)), 0.1)
    assert only(made.attempts[0].rows, "stall").breach and made.red
    assert not lab.compare_runs(run(load(stalled)), run(load(stalled)), 0.1).red


@pytest.mark.parametrize("code", ["generator-limited", "recorder-limited", "noisy-run"])
def test_the_instruments_own_trouble_is_a_warning(code: str) -> None:
    made = lab.compare_runs(run(case(QUICK)), run(case(QUICK, findings=[finding(code)])), 0.1)
    assert not made.red
    assert "instrument" in made.warnings


# As a user would ----------------------------------------------------------------------------------------------------


def saved(folder: Path, name: str, made: Run) -> str:
    path = folder / name
    path.write_text(made.to_json())
    return str(path)


def test_compare_shows_two_saved_runs(tmp_path: Path) -> None:
    base, now = saved(tmp_path, "base.json", run(case(QUICK))), saved(tmp_path, "now.json", run(case(SLOW)))
    shown = commands.run("compare", base, now, folder=tmp_path)
    assert shown.code == 0, shown.stderr
    assert "Worse at t, mcpace-client: time of call echo, " in shown.stdout and "1.5×" in shown.stdout.replace(
        "1.50×", "1.5×"
    )
    told = json.loads(commands.run("compare", base, now, "--json", folder=tmp_path).stdout)
    assert told["kind"] == "compare" and told["comparison"]["attempts"][0]["rows"][0]["verdict"] == "worse"


def test_gate_over_files_has_an_exit_code_and_writes_its_files(tmp_path: Path) -> None:
    base, now = saved(tmp_path, "base.json", run(case(QUICK))), saved(tmp_path, "now.json", run(case(SLOW)))
    files = [tmp_path / "summary.md", tmp_path / "junit.xml"]
    failed = commands.run(
        "gate", now, "--baseline", base, "--markdown", str(files[0]), "--junit", str(files[1]), folder=tmp_path
    )
    assert failed.code == 1, failed.stderr
    assert failed.stdout.startswith("Failed: the second side is slower than the tolerance allows.")
    assert all(file.is_file() for file in files)
    assert commands.run("gate", base, "--baseline", base, folder=tmp_path).code == 0
    assert commands.run("gate", now, "--baseline", base, "--tolerance", "60%", folder=tmp_path).code == 0


SERVER = """
import time
from mcpace import MCPServer

server = MCPServer("one")


@server.tool(annotations={{"readOnlyHint": True}})
def look() -> str:
    time.sleep({pause})  # the service's own time
    return "seen"


server.run()
"""


def test_gate_measures_both_sides_in_turns_and_twice_before_it_is_red(tmp_path: Path) -> None:
    targets = {}
    for name, pause in (("quick", 0.001), ("slow", 0.3)):
        (tmp_path / f"{name}.py").write_text(SERVER.format(pause=pause))
        targets[name] = f"stdio:{sys.executable} {tmp_path / name}.py"
    slow = commands.run(
        "gate",
        targets["slow"],
        "--base",
        targets["quick"],
        "--trials",
        5,
        "--calls",
        2,
        "--json",
        "--tolerance",
        "100%",
        folder=tmp_path,
    )
    assert slow.code == 1, slow.stderr
    made = json.loads(slow.stdout)["comparison"]
    assert made["interleaved"] and made["red"] and len(made["attempts"]) == 2
    assert {row["operation"] for row in made["attempts"][1]["rows"] if row["breach"]} == {"call"}


def test_a_baseline_that_called_another_tool_is_refused(tmp_path: Path) -> None:
    (tmp_path / "before.json").write_text(run(case(QUICK)).to_json())
    words = ["gate", "http://127.0.0.1:1/mcp", "--baseline", "before.json", "--tool"]
    refused = commands.run(*words, "other", folder=tmp_path)
    assert (refused.code, "has called echo, not other" in refused.sentence()) == (2, True)
    assert commands.run(*words, "echo", folder=tmp_path).code == 3


class Mortal(http.server.BaseHTTPRequestHandler):
    """An MCP server that ends after a number of calls."""

    protocol_version = "HTTP/1.1"
    calls_left = 5

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = asked["method"]
        if method == "tools/call":
            type(self).calls_left -= 1
        if self.calls_left < 0:
            self.close_connection = True
            return
        result = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": SAID},
            "tools/list": {"tools": self.tools()},
            "tools/call": {"content": []},
        }.get(method, {})
        self.answer(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) if "id" in asked else "")

    def tools(self) -> list[dict[str, Any]]:
        return [{"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]

    def do_GET(self) -> None:
        self.answer("", 405)

    def answer(self, text: str, status: int | None = None) -> None:
        self.send_response(status or (200 if text else 202))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


SAID = {"name": "mortal", "version": "1"}


def test_a_server_that_dies_at_its_fifth_call_fails_the_gate(tmp_path: Path) -> None:
    class Immortal(Mortal):
        calls_left = 1_000_000

    with sides(Mortal, Immortal) as (mortal, immortal):
        failed = commands.run(
            "gate", mortal, "--base", immortal, "--trials", 12, "--calls", 1, "--json", folder=tmp_path
        )
    assert failed.code == 1, failed.stderr
    made = json.loads(failed.stdout)["comparison"]
    assert made["red"] and "broken" in made["reasons"] and len(made["attempts"]) == 2


def test_a_server_that_is_slow_and_then_gone_fails_the_gate(tmp_path: Path) -> None:
    """It answers every call of the first attempt late, and accepts no connection in the second."""

    class Late(Mortal):
        calls_left = 6

        def answer(self, text: str, status: int | None = None) -> None:
            if '"content"' in text:
                time.sleep(0.1)  # the service's own time
            super().answer(text, status)
            if self.calls_left == 0:
                type(self).calls_left = -1

    class Immortal(Mortal):
        calls_left = 1_000_000

    with sides(Late, Immortal) as (late, immortal):
        words = ("gate", late, "--base", immortal, "--trials", 6, "--calls", 1, "--tolerance", "100%", "--json")
        failed = commands.run(*words, "--junit", "junit.xml", "--markdown", "summary.md", folder=tmp_path)
    assert failed.code == 1, failed.stderr
    made = json.loads(failed.stdout)["comparison"]
    assert [row["operation"] for row in made["attempts"][0]["rows"] if row["breach"]] == ["call"]
    assert not made["attempts"][0]["broken"] and not made["attempts"][1]["rows"]
    assert (made["red"], made["reasons"]) == (True, ["broken"])
    assert "fails where the first side worked" in (tmp_path / "summary.md").read_text()
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().get("failures") != "0"


class Changing(Mortal):
    """After its sixth call, the last of a first attempt, it changes as ``then`` says: without its tool, or gone."""

    calls_left = 1_000_000
    calls = 0
    pause_s = 0.0
    then = ""

    def tools(self) -> list[dict[str, Any]]:
        return [] if self.calls >= TRIALS and self.then == "without" else super().tools()

    def answer(self, text: str, status: int | None = None) -> None:
        if '"content"' in text:
            type(self).calls += 1
            if self.calls > TRIALS and self.then == "without":
                text = re.sub('"result".*', '"error": {"code": -32602, "message": "no such tool"}}', text)
            time.sleep(self.pause_s)  # the service's own time
        super().answer(text, status)
        if self.calls >= TRIALS and self.then == "gone":
            type(self).calls_left = -1


TRIALS = 6


@contextmanager
def sides(*kinds: type[Mortal]) -> Iterator[list[str]]:
    """Servers of each kind, by their addresses."""
    with ExitStack() as stack:
        servers = []
        for kind in kinds:
            server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind))
            server.daemon_threads = True
            stack.callback(server.shutdown)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            servers.append(f"http://127.0.0.1:{server.server_port}/mcp")
        yield servers


def gate_of(folder: Path, target: dict[str, Any], base: dict[str, Any], *words: str) -> tuple[commands.Ended, Run]:
    """Runs a gate. Returns its exit and the saved run."""
    with sides(*(type("Side", (Changing,), one) for one in (target, base))) as (second, first):
        asked = ("gate", second, "--base", first, "--trials", TRIALS, "--tolerance", "100%", "--out", "run.json")
        ended = commands.run(*asked, "--calls", 1, "--junit", "junit.xml", *words, folder=folder)
    return ended, Run.load(folder / "run.json")


SLOWER = {"pause_s": 0.3}
"""Pause that is longer than any delay of a busy machine."""


@pytest.mark.parametrize("words", [("--tool", "look"), ()])
def test_a_tool_that_is_gone_at_the_second_attempt_is_broken(words: tuple[str, ...], tmp_path: Path) -> None:
    ended, made = gate_of(tmp_path, {**SLOWER, "then": "without"}, {}, *words)
    assert ended.code == 1, ended.stderr
    assert made.comparison is not None and made.comparison.reasons == ["broken", "drift"]
    [lost] = made.comparison.attempts[1].broken
    assert lost.operation == "call" and ("no such tool" in (lost.error or "")) is bool(words)
    assert [len(one.trials_s) for one in made.cases if one.operation == "list"] == [TRIALS]
    assert judged_in_junit(made) == ("2", "0")


@pytest.mark.parametrize(
    ("then", "words", "says"),
    [("without", ("--tool", "look"), "no such tool"), ("without", (), "no call look"), ("gone", (), "connect: ")],
)
def test_a_first_side_that_fails_at_the_second_attempt_confirms_nothing_and_loses_nothing(
    then: str, words: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    ended, made = gate_of(tmp_path, SLOWER, {"then": then}, *words)
    assert ended.code == 3, ended.stderr
    assert " ".join(ended.stdout.split()).startswith(
        "Not judged: the first measurement looked worse, and the second could not be made:"
    )
    assert made.comparison is not None and says in made.comparison.unconfirmed
    assert not made.comparison.red and made.comparison.attempts[0].rows and made.cases
    assert judged_in_junit(made) == ("0", "1")


def test_a_named_tool_that_was_never_there_is_refused_with_where_it_was_looked_for(tmp_path: Path) -> None:
    with sides(Changing, Changing) as (second, first):
        refused = commands.run("gate", second, "--base", first, "--tool", "lock", folder=tmp_path)
    assert (refused.code, "did you mean look?" in refused.stderr, first in refused.stderr) == (2, True, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["profile:simple"], "--base TARGET"),
        (["profile:simple", "--base", "profile:simple", "--baseline", "x.json"], "give either"),
        (["profile:simple", "--baseline", "none.json"], "cannot read none.json"),
        (["profile:simple", "--base", "profile:nonesuch"], "nonesuch"),
        (["profile:simple", "--base", "profile:simple", "--tolerance", "much"], "is not a tolerance"),
        (["profile:simple", "--base", "profile:simple", "--tolerance", "10"], "write 10%"),
        (["gone.json", "--baseline", str(CLIENTS)], "cannot read gone.json"),
        (["profile:simple", "--baseline", str(CLIENTS)], "a run of mcpace clients is no baseline"),
    ],
)
def test_impossible_gates_are_refused_in_a_sentence(arguments: list[str], words: str, tmp_path: Path) -> None:
    refused = commands.run("gate", *arguments, folder=tmp_path)
    assert refused.code == 2
    assert words in refused.stderr
