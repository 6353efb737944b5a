"""Trials, ledgers and findings folded into cases."""

from __future__ import annotations

from math import isclose
from typing import Any

from mcpace.lab.fold import Facts, Trial, cases, slowest_warm
from mcpace.report.labels import split_words
from mcpace.report.run import ServerSplit, Subject
from mcpace.report.words import cost_of

SECOND = 1_000_000_000
PARTS = ("client.send", "connect", "request", "server", "response", "client.receive", "unaccounted")


def ledger(call: int, seconds: float, told: dict[str, int] | None = None, doubt: str | None = None) -> dict[str, Any]:
    parts = dict.fromkeys(PARTS, 0)
    parts["server"] = int(seconds * SECOND)
    start = call * 100 * SECOND
    split = None
    if told:
        split = {**told, "rest_ns": parts["server"] - sum(told.values())}
        if doubt:
            split = {**dict.fromkeys(told, 0), "rest_ns": parts["server"], "doubt": doubt}
    end = start + parts["server"]
    return {"call": call, "start_ns": start, "end_ns": end, "parts": parts, "told": told, "split": split}


def finding(costs: dict[int, float], evidence: list[tuple[int, str]]) -> dict[str, Any]:
    return {
        "code": "late-delivery",
        "context": {},
        "severity": "high",
        "confidence": {"level": "high", "reason": "repeated"},
        "calls": [{"call": c, "time_ns": int(s * SECOND), "requests": 1, "bytes": 10} for c, s in costs.items()],
        "evidence": [{"event": n, "at_ns": at, "role": role} for n, (at, role) in enumerate(evidence)],
        "disproof": "draw",
    }


def facts(*seconds: float | None) -> Facts:
    result = Facts(Subject(sdk="python", version="1"), "profile:x", "greet")
    for number, value in enumerate(seconds, 1):
        failure = "call: boom" if value is None else None
        result.trials.append(Trial("call", value, number, failure))
        result.ledgers.append(ledger(number, value or 0.0))
    return result


def test_the_cold_trial_is_apart_from_summary_and_ledger() -> None:
    case = cases(facts(9.0, 1.0, 3.0), ["call"])[0]
    assert case.summary is not None and case.ledger_s is not None
    assert (case.summary.first_s, case.summary.mean_s, case.ledger_s.server) == (9.0, 2.0, 2.0)
    assert case.ledger_s.total() == case.summary.mean_s


def test_a_single_trial_stands_for_itself() -> None:
    case = cases(facts(9.0), ["call"])[0]
    assert case.summary is not None and case.summary.median_s == 9.0


def test_failed_trials_are_told_and_the_others_kept() -> None:
    case = cases(facts(1.0, None, 2.0), ["call"])[0]
    assert (case.trials_s, case.failures, case.error) == ([1.0, 2.0], ["call: boom"], "call: boom")


def test_an_operation_that_was_never_reached_says_why() -> None:
    broken = facts()
    broken.error = "connect: refused"
    case = cases(broken, ["call"])[0]
    assert (case.trials_s, case.summary, case.error) == ([], None, "connect: refused")


def test_unsupported_is_no_failure() -> None:
    result = facts()
    result.trials.append(Trial("call", unsupported="no such API"))
    case = cases(result, ["call"])[0]
    assert (case.unsupported, case.error, case.failures) == ("no such API", None, [])


def test_a_findings_cost_is_that_of_warm_calls_and_its_evidence_that_of_one() -> None:
    result = facts(9.0, 1.0, 3.0)
    inside, outside = 200 * SECOND + 5, 300 * SECOND + 5
    result.findings = [finding({2: 0.5, 3: 1.5}, [(inside, "result-complete"), (outside, "result-complete")])]
    found = cases(result, ["call"])[0].findings[0]
    assert (found.cost_s, found.calls, found.of_calls) == (1.0, 2, 3)
    # Of the call whose waterfall is shown: the slowest.
    assert ([item.event for item in found.evidence], found.trial) == ([1], 2)


def test_a_finding_of_the_cold_call_only_is_costed_by_it() -> None:
    result = facts(9.0, 1.0)
    result.findings = [finding({1: 4.0}, [])]
    assert cases(result, ["call"])[0].findings[0].cost_s == 4.0


def outside(**total: int) -> dict[str, Any]:
    return {**finding({}, []), "total": {"time_ns": 0, "requests": 0, "bytes": 0, **total}}


def test_what_was_seen_outside_every_call_is_told_once_with_its_whole_cost() -> None:
    result = facts(1.0, 2.0)
    result.findings = [outside(requests=12, bytes=4_000)]
    told = {case.operation: case.findings for case in cases(result, ["connect", "call", "disconnect"])}
    assert [operation for operation, found in told.items() if found] == ["call"]
    (found,) = told["call"]
    assert (found.calls, found.cost_s, found.total_requests, found.total_bytes) == (0, 0.0, 12, 4_000)
    assert cost_of(found).replace("\N{NO-BREAK SPACE}", " ") == "12 extra requests + 4.0 kB in all"
    assert cases(result, ["connect", "list"])[-1].findings != []


def test_other_causes_that_look_the_same_are_kept_with_what_decides() -> None:
    result = facts(1.0)
    other = {"code": "session-leak", "decided_by": "hold-one-session"}
    result.findings = [{**finding({1: 0.5}, []), "alternatives": [other]}]
    (found,) = cases(result, ["call"])[0].findings
    assert [(it.code, it.decided_by) for it in found.alternatives] == [("session-leak", "hold-one-session")]


def test_a_finding_of_another_operation_is_left_out() -> None:
    result = facts(1.0)
    result.findings = [finding({77: 4.0}, [])]
    assert cases(result, ["call"])[0].findings == []


TOLD = {"transport_ns": SECOND // 10, "dispatch_ns": SECOND // 5, "service_ns": SECOND // 2}


def split_of(*ledgers: dict[str, Any]) -> ServerSplit:
    result = facts(*(0.0 for _ in ledgers))
    result.ledgers = list(ledgers)
    case = cases(result, ["call"])[0]
    assert case.ledger_s is not None and case.ledger_s.server_split is not None
    split = case.ledger_s.server_split
    assert split.rest is not None
    assert isclose(split.transport + split.dispatch + split.service + split.rest, case.ledger_s.server)
    return split


def test_a_servers_own_timing_becomes_its_split_and_the_rest_is_shown() -> None:
    split = split_of(ledger(1, 1.0, TOLD))
    assert (split.transport, split.dispatch, split.service, split.rest) == (0.1, 0.2, 0.5, 0.2)
    assert (split.told, split.of_calls, split.doubted) == (1, 1, 0)
    assert split_words(split).startswith("the server says: transport 100")


def test_calls_without_an_account_are_rest() -> None:
    split = split_of(ledger(1, 9.0, TOLD), ledger(2, 1.0, TOLD), ledger(3, 3.0))
    assert (split.service, split.rest) == (0.25, 1.6)
    assert "of 1 of 2 calls" in split_words(split)


def test_an_account_that_cannot_be_true_splits_nothing_and_is_told() -> None:
    split = split_of(ledger(1, 0.5, TOLD, "longer-than-exchange"))
    assert (split.service, split.rest, split.doubted) == (0.0, 0.5, 1)
    words = split_words(split).replace("\N{NO-BREAK SPACE}", " ")
    assert words == "the server's account of 1 of 1 calls (800 ms a call) is not believed: " + (
        "its layers are longer than the whole exchange"
    )


def test_the_slowest_warm_trial_is_shown() -> None:
    trials = facts(9.0, 1.0, 3.0).trials
    assert slowest_warm(trials) is trials[2]
    assert slowest_warm([]) is None
