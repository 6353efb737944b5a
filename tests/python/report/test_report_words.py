"""Every cause has words, whatever its context holds; verdicts say no more than the run proves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcpace.report.groups import group_findings
from mcpace.report.model.run import Alternative, Case, Change, Evidence, Finding, Ledger, Run, Subject, Summary
from mcpace.report.verdict import verdict
from mcpace.report.words import findings
from mcpace.report.words.disproofs import DECISIONS
from mcpace.report.words.labels import LOAD_REASONS, PARTS, PHASES, REASONS, ROLES
from mcpace.report.words.quantities import NO_BREAK, duration
from mcpace.report.words.standing import Standing, change_words, standing

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "tests" / "fixtures" / "runs"
EXPLAIN = ROOT / "crates" / "explain" / "src"

CONTEXTS = {
    "duplicate-request": {"methods": ["tools/list"], "repeats": 5, "executions": 0, "after_reply_end": 5},
    "late-delivery": {"calls": 5, "of_calls": 5, "released_by": "reply-end", "longest_ns": 2_000_000_000},
    "hidden-listing": {"calls": 1, "of_calls": 5, "listings": 1},
    "connection-per-request": {
        "requests": 12,
        "connections": 11,
        "needless": 9,
        "closed_by": "server",
        "replies": "sse",
    },
    "session-per-call": {"tool_calls": 5, "sessions": 5, "processes": 5},
    "discovery-repeated": {"targets": ["/.well-known/oauth-protected-resource"], "repeats": 4},
    "waits-for-get": {"occurrences": 1, "gate": "authorization-lock", "longest_ns": 300_000_000},
    "delayed-ack": {"share": 0.48, "from_s": 0.035, "to_s": 0.06, "mean_s": 0.02, "quick_mean_s": 0.0013},
    "redirect-per-request": {"redirects": 10, "of_requests": 10, "status": 307, "from": "/mcp", "to": "/mcp/"},
    "address-fallback": {"tries": 5, "from": "[::1]:80", "to": "127.0.0.1:80", "longest_ns": 1_000_000_000},
    "transport-probing": {"probes": 5, "status": 405},
    "buffered-stream": {"replies": 2, "events": 10, "encoding": "gzip", "longest_ns": 400_000_000},
    "clustered-stream-lifetime": {
        "streams": 4,
        "without_result": 1,
        "age_ns": 300_000_000_000,
        "counted_from": "last-event",
        "closed_by": "client",
    },
    "connection-limit": {"limit": 6, "held": 2, "never_left": 1, "longest_ns": 3_000_000_000},
    "blocked-event-loop": {"held": 9, "without_tool": 3, "across_sessions": True, "longest_ns": 900_000_000},
    "serial-session": {"held": 9, "longest_ns": 900_000_000},
    "completion-waves": {"at_a_time": 40, "held": 60, "longest_ns": 900_000_000},
    "thread-pool-saturation": {"at_a_time": 8, "held": 12, "longest_ns": 900_000_000},
    "head-of-line": {"held": 3, "released_with": "full-buffer", "longest_ns": 900_000_000},
    "retried-execution": {
        "tool": "greet",
        "repeats": 2,
        "both_answered": 1,
        "trigger": "time-out",
        "timeout_ns": 30_000_000_000,
    },
    "repeated-listing": {"methods": ["tools/list"], "repeats": 4, "tool_calls": 5, "largest_bytes": 2_000},
    "amplification": {
        "calls": 5,
        "requests": 20,
        "typical": 4,
        "sessions": 5,
        "methods": {"initialize": 5, "tools/call": 5},
    },
    "serial-fan-out": {"requests": 2, "servers": 3, "longest_ns": 80_000_000, "at_once_ns": 38_000_000},
    "constant-cost-per-request": {
        "follows": "token",
        "requests": 12,
        "kinds": 4,
        "floor_ns": 61_000_000,
        "without_ns": 1_000_000,
    },
    "auth-deadlock": {"calls": 1, "of_calls": 5, "longest_ns": 30_000_000_000},
    "stream-not-drained": {"requests": 6, "connections": 6, "needless": 5, "left_early": 6},
    "get-loop": {"streams": 10, "sessions": 1, "period_ns": 1_000_000_000, "life_ns": 3_000_000, "not_a_stream": True},
    "resume-loop": {"attempts": 8, "calls": 1, "period_ns": 2_000_000_000},
    "retry-storm": {"requests": 80, "pattern": "in-step", "status": 503, "clients": 20, "period_ns": 2_000_000_000},
    "session-leak": {
        "begun": 200,
        "ended": 0,
        "bytes_each": 524_288,
        "bytes_before": 60_000_000,
        "bytes_after": 160_000_000,
    },
    "task-leak": {"requests": 1_400, "bytes_each": 70_000, "bytes_before": 60_000_000, "bytes_after": 160_000_000},
    "rebuilt-per-request": {
        "of": "server",
        "few_tools": 5,
        "many_tools": 200,
        "each_with_few_ns": 200_000,
        "each_with_many_ns": 4_000_000,
    },
    "large-listing": {
        "tools": 142,
        "pages": 2,
        "bytes": 372_000,
        "tokens": 93_000,
        "bytes_in_all": 372_000,
        "of_bytes": 400_000,
    },
    "superlinear-line": {"lines": 6, "largest": 8_000_000, "longest_ns": 4_000_000_000, "power": 2.0},
    "recorder-limited": {"times": 12, "late_ns": 900_000_000, "of_ns": 2_000_000_000},
    "noisy-run": {"times": 12, "late_ns": 900_000_000, "of_ns": 2_000_000_000},
    "generator-limited": {"reason": "late-starts", "busy": 0.97, "late_p99_s": 0.004, "threads": 1},
    "slow-start": {"program": "npx", "package_runner": True, "starts": 1, "longest_ns": 4_000_000_000},
}


def finding(code: str, context: dict[str, object], **more: object) -> Finding:
    basis = {"severity": "high", "confidence": "high", "cost_s": 1.5, "calls": 5, "of_calls": 5}
    return Finding.model_validate({"code": code, "context": context, **basis, **more})


def rust_enum(path: Path, name: str) -> set[str]:
    """The kebab-case names of a unit-like Rust enum, or of the causes in their table."""
    if name == "Cause":
        return set(re.findall(r'^    \w+ = "([a-z-]+)" in ', path.read_text(), re.M))
    body = re.search(rf"^( *)pub enum {name} \{{(.*?)\n\1\}}", path.read_text(), re.S | re.M)
    assert body
    return {kebab(variant) for variant in re.findall(r"^ +([A-Z]\w+),$", body[2], re.M)}


def kebab(variant: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", variant).lower()


@pytest.mark.parametrize(
    ("file", "enum", "known"),
    [
        ("findings/catalogue.rs", "Cause", set(findings.CODES) - set(findings.LOAD_CODES)),
        ("findings/proof.rs", "Disproof", set(findings.DISPROOFS) - set(findings.LOAD_DISPROOFS)),
        ("findings/proof.rs", "Role", set(ROLES)),
        ("findings/proof.rs", "Reason", set(REASONS) - set(LOAD_REASONS)),
        ("waterfall.rs", "Phase", set(PHASES)),
    ],
)
def test_words_and_explain_know_the_same_names(file: str, enum: str, known: set[str]) -> None:
    assert rust_enum(EXPLAIN / file, enum) == known


def test_parts_are_the_ledgers() -> None:
    parts = Ledger.model_validate(dict.fromkeys(PARTS, 0.0)).parts()
    assert tuple(PARTS) == tuple(parts)


def named_alternatives() -> set[tuple[str, str]]:
    """Each other cause that a rule names, with the experiment that it says would decide."""
    named = {"decides": ["CallFromSecondSession", "CallToolThatOnlyWaits"], "alone": ["CallFromSecondSession"]}
    found = set()
    for file in (EXPLAIN / "findings").rglob("*.rs"):
        for code, decided_by in re.findall(r"(?:\.or\(|Some\(\()Code::(\w+), ([\w:]+)", file.read_text()):
            which = [decided_by.removeprefix("Disproof::")] if "::" in decided_by else named[decided_by]
            found |= {(kebab(code), kebab(one)) for one in which}
    return found


def test_each_alternative_says_what_would_be_seen_if_it_were_that() -> None:
    assert set(DECISIONS) == named_alternatives()
    assert {code for code, _ in DECISIONS} <= set(findings.CODES)
    assert {decided_by for _, decided_by in DECISIONS} <= set(findings.DISPROOFS)
    told = findings.alternative_for(Alternative(code="connection-per-request", decided_by="drain-replies"))
    assert told.endswith(": it is that if connections stay as many when each reply is read to its end")


def test_an_alternative_that_this_release_does_not_know_has_its_experiment_alone() -> None:
    """What would disprove the finding speaks for the other cause."""
    told = findings.alternative_for(Alternative(code="serial-session", decided_by="drain-replies"))
    assert told.endswith("(Read each reply to its end before the next request)")
    assert findings.alternative_for(Alternative(code="gremlins", decided_by="pray")) == "gremlins was seen"


@pytest.mark.parametrize("code", findings.CODES)
@pytest.mark.parametrize("context", ["whole", "empty", "hostile"])
def test_every_code_has_words(code: str, context: str) -> None:
    contexts = {"whole": CONTEXTS[code], "empty": {}, "hostile": dict.fromkeys(CONTEXTS[code], "\x1b[1m<b>")}
    given = finding(code, contexts[context])
    sentences = [findings.title_for(code), findings.explanation_for(given), findings.advice_for(code, given.context)]
    for sentence in sentences:
        assert sentence
        assert "\x1b" not in sentence
        assert "None" not in sentence
    assert sentences[1].endswith(".")
    assert sentences[2].endswith(".")


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
    text = findings.explanation_for(finding("duplicate-request", CONTEXTS["duplicate-request"]))
    assert text.endswith("The server answered tools/list twice.")


def test_a_client_that_leaves_replies_is_told_so() -> None:
    text = findings.explanation_for(
        finding("connection-per-request", {"requests": 9, "connections": 8, "left_early": 3})
    )
    assert text.startswith("8 connections for 9 requests: the client broke off 3 replies before the end")


@pytest.mark.parametrize(
    ("replies", "said"), [("json", "JSON replies"), ("sse", "event streams as replies"), ("later", "")]
)
def test_connections_are_told_with_what_came_back_on_them(replies: str, said: str) -> None:
    context = CONTEXTS["connection-per-request"] | {"replies": replies}
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
    # What was measured until its server was gone has not failed as a whole.
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


def test_the_fixtures_say_that_they_are_made_up() -> None:
    for path in RUNS.glob("*.json"):
        assert Run.load(path).options["made_for_tests"] is True


def test_a_summary_needs_no_second_trial() -> None:
    assert Summary.of([2.0]).mean_s == 2.0
