"""Every cause has words for any context, and verdicts say no more than the run proves."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from mcpace import _core
from mcpace.report.groups import group_findings
from mcpace.report.model.context import Context, best_match
from mcpace.report.model.contexts import CONTEXTS, DuplicateRequest
from mcpace.report.model.run import Alternative, Case, Change, Evidence, Finding, Ledger, Run, Subject, Summary
from mcpace.report.verdict import verdict
from mcpace.report.words import findings
from mcpace.report.words.disproofs import DECISIONS
from mcpace.report.words.labels import PARTS, PHASES, REASONS, ROLES
from mcpace.report.words.quantities import NO_BREAK, duration
from mcpace.report.words.standing import Standing, change_words, standing

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "tests" / "fixtures" / "runs"

CATALOGUE = _core.catalogue()
SHOWN = {
    "duplicate-request": {"methods": ["tools/list"], "repeats": 5, "executions": 0, "after_reply_end": 5},
    "connection-per-request": {"requests": 12, "connections": 11, "needless": 9, "closed_by": "server"},
}


def values(annotation: object) -> list[object]:
    """Every value that affects the wording, or one value of the type."""
    if get_origin(annotation) in (UnionType, Union):
        return [value for inner in get_args(annotation) if inner is not type(None) for value in values(inner)]
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if get_origin(annotation) is Annotated:
        return values(get_args(annotation)[0])
    if get_origin(annotation) is list:
        return [values(get_args(annotation)[0])]
    if get_origin(annotation) is dict:
        return [{"tools/call": values(get_args(annotation)[1])[0]}]
    return {bool: [True, False], int: [3, 0], float: [0.04], str: ["greet"]}[annotation]  # type: ignore[index]


def examples(context: type[Context]) -> list[dict[str, object]]:
    """Complete contexts, in which each value of each member occurs."""
    hints = get_type_hints(context, include_extras=True)
    choices = {field.alias or name: values(hints[name]) for name, field in context.model_fields.items()}
    most = max(len(some) for some in choices.values())
    return [{name: some[at % len(some)] for name, some in choices.items()} for at in range(most)]


def finding(code: str, context: dict[str, object], **more: object) -> Finding:
    basis = {"severity": "high", "confidence": "high", "cost_s": 1.5, "calls": 5, "of_calls": 5}
    return Finding.model_validate({"code": code, "context": context, **basis, **more})


@pytest.mark.parametrize(
    ("names", "known"),
    [
        ([*chain(*CATALOGUE["disproofs"])], findings.DISPROOFS),
        (CATALOGUE["roles"], ROLES),
        ([*chain(*CATALOGUE["reasons"])], REASONS),
        (CATALOGUE["phases"], PHASES),
    ],
    ids=["disproofs", "roles", "reasons", "phases"],
)
def test_words_and_the_catalogue_know_the_same_names(names: list[str], known: dict[str, str]) -> None:
    assert sorted(names) == sorted(known)


def test_every_context_has_words() -> None:
    entries = [(entry["code"], entry["context"]) for entry in CATALOGUE["causes"]]
    listed = [(code, context.__name__) for code, contexts in CONTEXTS.items() for context in contexts]
    assert sorted(entries) == sorted(listed)
    assert {context for contexts in CONTEXTS.values() for context in contexts} == set(findings._WORDS)


def test_parts_are_the_ledgers() -> None:
    parts = Ledger.model_validate(dict.fromkeys(PARTS, 0.0)).parts()
    assert tuple(PARTS) == tuple(parts)


def test_each_alternative_says_what_would_be_seen_if_it_were_that() -> None:
    assert set(DECISIONS) == {(other["code"], other["decided_by"]) for other in CATALOGUE["alternatives"]}
    assert {code for code, _ in DECISIONS} <= set(findings.CODES)
    assert {decided_by for _, decided_by in DECISIONS} <= set(findings.DISPROOFS)
    told = findings.alternative_for(Alternative(code="connection-per-request", decided_by="drain-replies"))
    assert told.endswith(", if connections stay as many when each reply is read to its end")


def test_an_alternative_that_this_release_does_not_know_has_its_experiment_alone() -> None:
    """The result that would disprove the finding supports the other cause."""
    told = findings.alternative_for(Alternative(code="serial-session", decided_by="drain-replies"))
    assert told.endswith("(Read each reply to its end before the next request)")
    assert findings.alternative_for(Alternative(code="gremlins", decided_by="pray")) == "gremlins was seen"


@pytest.mark.parametrize("context", findings._WORDS, ids=lambda context: context.__name__)
def test_every_context_is_told_whatever_it_holds(context: type[Context]) -> None:
    hostile = dict.fromkeys(context.members(), "\x1b[1m<b>")
    for facts in [{}, hostile, *examples(context)]:
        given = finding(context.code, facts)
        title, explanation, advice = (
            findings.title_for(context.code),
            findings.explanation_for(given),
            findings.advice_for(context.code, given.context),
        )
        for sentence in (title, explanation, advice):
            assert sentence
            assert "\x1b" not in sentence
            assert "None" not in sentence
        assert explanation.endswith(".")
        assert advice.endswith(".")


@pytest.mark.parametrize("context", findings._WORDS, ids=lambda context: context.__name__)
def test_whole_facts_are_read_as_their_own_context(context: type[Context]) -> None:
    for facts in examples(context):
        read = best_match(CONTEXTS[context.code], facts)
        assert type(read) is context
        assert read.facts() == facts


def test_unreadable_facts_are_absent() -> None:
    read = DuplicateRequest.read({"repeats": "many", "executions": -1, "methods": [1], "streams": 2, "later": 1})
    assert read.facts() == {"streams": 2}


def test_a_delayed_acknowledgement_of_a_recording_and_of_a_load_are_told_apart() -> None:
    recording = findings.explanation_for(finding("delayed-ack", {"pauses": 3, "pause_ns": 40_000_000}))
    assert recording.startswith("3 replies stood still for 40")
    load = {"share": 0.48, "from_s": 0.035, "to_s": 0.06, "mean_s": 0.02, "quick_mean_s": 0.0013}
    assert findings.explanation_for(finding("delayed-ack", load)).startswith("48")
    assert not re.search(r"\d", findings.explanation_for(finding("delayed-ack", {})))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"library": "tenacity", "file": "a.py"}, "tenacity waits before it tries again"),
        ({"library": "throttler", "file": "a.py"}, "Let throttler wait for less"),
        ({"file": "a.py"}, "asyncio.Event"),
        ({"file": "a.mjs"}, "events.once"),
    ],
)
def test_the_advice_about_a_timer_names_what_waits(facts: dict[str, str], said: str) -> None:
    assert said in findings.advice_for("timer-wait", {**facts, "tool": "search", "gain_ns": 5_000_000})


def test_an_unknown_code_is_shown_as_it_is() -> None:
    assert findings.title_for("gremlins") == "gremlins"
    assert findings.explanation_for(finding("gremlins", {}))
    assert findings.advice_for("gremlins", {}) == ""
    assert findings.disproof_for("gremlins") == ""


def test_the_drained_time_is_read_from_the_evidence() -> None:
    evidence = [Evidence(at_s=0.5, role="first-result", event=1), Evidence(at_s=2.6, role="first-reply-end", event=2)]
    text = findings.explanation_for(finding("duplicate-request", {"executions": 5}, evidence=evidence))
    assert "(2.10\N{NO-BREAK SPACE}s)" in text
    assert text.endswith("The tool ran twice.")


def test_a_listing_that_ran_twice_is_no_tool() -> None:
    text = findings.explanation_for(finding("duplicate-request", SHOWN["duplicate-request"]))
    assert text.endswith("The server answered tools/list twice.")


def test_a_client_that_leaves_replies_is_told_so() -> None:
    text = findings.explanation_for(
        finding("connection-per-request", {"requests": 9, "connections": 8, "left_early": 3})
    )
    assert text.startswith("8 connections for 9 requests: the client broke off 3 replies before the end")


@pytest.mark.parametrize(
    "code",
    ["connection-per-request", "discovery-repeated", "redirect-per-request", "session-per-call", "stream-not-drained"],
)
def test_a_recording_without_marked_calls_has_no_cost_for_a_call(code: str) -> None:
    text = findings.explanation_for(finding(code, SHOWN.get(code, {}), calls=0, of_calls=0, cost_s=0.0, total_s=0.25))
    assert "250\N{NO-BREAK SPACE}ms in all" in text and "a call" not in text.replace("for a call", "")


@pytest.mark.parametrize(
    ("replies", "said"), [("json", "JSON replies"), ("sse", "event streams as replies"), ("later", "")]
)
def test_connections_are_told_with_what_came_back_on_them(replies: str, said: str) -> None:
    context = SHOWN["connection-per-request"] | {"replies": replies}
    text = findings.explanation_for(finding("connection-per-request", context))
    kind = f" with {said}" if said else ""
    assert text.startswith(f"11 connections for 12 requests{kind}, though the server closed")


@pytest.mark.parametrize("code", ["completion-waves", "thread-pool-saturation"])
def test_a_figure_that_is_missing_leaves_no_capital_in_mid_sentence(code: str) -> None:
    assert not re.search(r"[a-z;:,] [A-Z][a-z]", findings.explanation_for(finding(code, {})))


def test_some_calls_only() -> None:
    text = findings.explanation_for(finding("duplicate-request", {}, calls=2))
    assert text.startswith("2 of 5 calls were sent twice")


def test_a_cost_says_in_how_many_calls() -> None:
    def said(**more: object) -> str:
        return findings.cost_of(finding("late-delivery", {}, **more)).replace("\N{NO-BREAK SPACE}", " ")

    assert said() == "1.50 s a call"
    assert said(calls=1) == "1.50 s a call, in 1 of 5"
    assert said(calls=1, cost_s=0.0) == "no time of its own"


def change(ratio: float, low: float, high: float, difference_s: float) -> Change:
    return Change(against="python@1.11.0", ratio=ratio, low=low, high=high, difference_s=difference_s)


@pytest.mark.parametrize(
    ("given", "expected", "said"),
    [
        (None, Standing.UNKNOWN, ""),
        (change(5.2, 4.9, 5.6, 0.4), Standing.MUCH_SLOWER, "5.2× slower (4.9–5.6)"),
        (change(1.02, 0.97, 1.06, 0.1), Standing.SAME, "no difference seen"),
        (change(1.04, 1.01, 1.06, 0.1), Standing.SLOWER, "1.04× slower (1.01–1.06)"),
        (change(3.0, 2.0, 4.0, 0.0003), Standing.SLOWER, "3.0× slower (2.0–4.0)"),
        (change(0.2, 0.1, 0.25, -0.4), Standing.MUCH_FASTER, "5.0× faster (4.0–10)"),
    ],
)
def test_a_change_in_words(given: Change | None, expected: Standing, said: str) -> None:
    assert standing(given) is expected
    assert change_words(given) == said


def test_a_change_has_one_figure_at_every_width() -> None:
    faster = Change(against="a", ratio=0.62, low=0.23, high=0.95, difference_s=-0.1)
    assert change_words(faster).startswith("1.61× faster (1.05–")
    assert change_words(faster, short=True) == "1.61× faster"


def plain(run: Run) -> str:
    return verdict(run).replace("\N{NO-BREAK SPACE}", " ")


def load(name: str) -> Run:
    return Run.load(RUNS / f"{name}.json")


def test_verdict_of_the_regression() -> None:
    assert plain(load("clients")) == (
        "python 1.12.1 and 1.13.0 are 20 to 472× slower than 1.11.0 at profile:notion (connect, list, call): "
        "every request is sent twice. Fixed in 1.14.0."
    )


def test_verdict_of_a_search() -> None:
    assert plain(load("bisect")) == (
        "python 1.12.1 is the first bad release at profile:notion: a call takes 2.01 s, against 4.10 ms in 1.11.0; "
        "every request is sent twice. 1.12.0 could not be tested, so the change may already be in it."
    )
    assert plain(load("mended")) == (
        "python 1.14.0 fixed it at profile:notion: a call takes 4.10 ms, against 2.01 s in 1.13.1, "
        "where every request is sent twice."
    )


def test_verdict_names_no_cause_that_costs_little() -> None:
    run = load("clients")
    for case in run.cases:
        for found in case.findings:
            found.cost_s = 0.001
    assert "no known cause was recognised" in plain(run)
    assert "sent twice" not in plain(run)


def test_verdict_tells_no_release_of_anothers_cause() -> None:
    run = load("clients")
    for case in run.cases:
        if (case.target, case.subject.version, case.operation) == ("profile:notion", "1.14.0", "connect"):
            case.change = Change(against="python@1.11.0", ratio=1.4, low=1.3, high=1.5, difference_s=0.02)
    assert plain(run) == (
        "python 1.12.1 and 1.13.0 are 20 to 472× slower than 1.11.0 at profile:notion (connect, list, call): "
        "every request is sent twice. "
        "python 1.14.0 is 1.40× slower than 1.11.0 at profile:notion (connect); no known cause was recognised."
    )


def test_verdict_when_the_slow_release_comes_first() -> None:
    run = Run.from_json(load("clients").to_json())
    slow, fast = (
        [case for case in run.cases if case.target == "profile:notion" and case.subject.version == version]
        for version in ("1.12.1", "1.14.0")
    )
    for now, before in zip(fast, slow, strict=True):
        now.change = Change(against="python@1.12.1", ratio=0.01, low=0.009, high=0.011, difference_s=-2.0)
        before.change = None
    run.cases = [*slow[1:], *fast[1:]]
    assert plain(run) == (
        "python 1.14.0 is 100× faster than 1.12.1 at profile:notion (connect, list, call): with 1.12.1, "
        "every request is sent twice."
    )


def test_verdict_counts_what_failed() -> None:
    case = Case(subject=Subject(sdk="python", version="9.9"), target="profile:simple", operation="call", error="no")
    run = load("measure")
    run.cases = [case]
    assert plain(run) == "Nothing could be measured. 1 of 1 case failed or could not be measured."
    # A case that was measured until its server ended has not failed completely.
    run.cases = [case, case.model_copy(update={"trials_s": [0.1, 0.1], "failures": ["no"]})]
    assert plain(run).endswith("1 of 2 cases failed or could not be measured. In 1 of 2 cases some trials failed.")


def test_nothing_wrong() -> None:
    assert plain(load("measure")).endswith("No cause of lost time was found.")


@pytest.mark.parametrize(
    ("codes", "says"),
    [
        ([], "No cause of lost time was found."),
        (["connection-per-request"], "One cause of lost time was found, of little weight."),
        (["connection-per-request", "hidden-listing"], "2 causes of lost time were found, of little weight."),
    ],
)
def test_what_is_shown_below_is_not_denied_above(codes: list[str], says: str) -> None:
    run = load("measure")
    example = next(finding for case in load("clients").cases for finding in case.findings)
    run.cases[-1].findings = [example.model_copy(update={"code": code, "severity": "low"}) for code in codes]
    assert plain(run).endswith(says)


def test_findings_are_told_once_with_every_place() -> None:
    groups = group_findings(load("clients").cases)
    assert [group.code for group in groups] == ["duplicate-request", "connection-per-request"]
    (place,) = groups[0].places
    assert place.operations == ("connect", "list", "call")
    assert place.subjects == ("python@1.12.1", "python@1.13.0")


def test_nothing_has_no_digits_behind_the_point() -> None:
    assert duration(0.0) == f"0{NO_BREAK}s"


MEASURED = {"inside.json"}
"""Fixtures that are runs of real programs: a flame graph is too large to be made up."""


def test_the_fixtures_say_that_they_are_made_up() -> None:
    for path in RUNS.glob("*.json"):
        assert Run.load(path).options.get("made_for_tests", False) is (path.name not in MEASURED)


def test_a_summary_needs_no_second_trial() -> None:
    assert Summary.of([2.0]).mean_s == 2.0
