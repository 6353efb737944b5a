"""Trials, ledgers and findings folded into cases."""

from __future__ import annotations

from typing import Any

from mcpace.lab.fold import Facts, Trial, cases, slowest_warm
from mcpace.report.run import Subject

SECOND = 1_000_000_000
PARTS = ("client.send", "connect", "request", "server", "response", "client.receive", "unaccounted")


def ledger(call: int, seconds: float, told: bool = False) -> dict[str, Any]:
    parts = dict.fromkeys(PARTS, 0)
    parts["server"] = int(seconds * SECOND)
    start = call * 100 * SECOND
    split = {"transport_ns": 1, "dispatch_ns": 2, "service_ns": 3} if told else None
    return {"call": call, "start_ns": start, "end_ns": start + parts["server"], "parts": parts, "told": split}


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
    assert [item.event for item in found.evidence] == [0]


def test_a_finding_of_the_cold_call_only_is_costed_by_it() -> None:
    result = facts(9.0, 1.0)
    result.findings = [finding({1: 4.0}, [])]
    assert cases(result, ["call"])[0].findings[0].cost_s == 4.0


def test_a_finding_of_another_operation_is_left_out() -> None:
    result = facts(1.0)
    result.findings = [finding({77: 4.0}, [])]
    assert cases(result, ["call"])[0].findings == []


def test_a_servers_own_timing_becomes_its_split() -> None:
    result = facts(1.0)
    result.ledgers = [ledger(1, 1.0, told=True)]
    split = cases(result, ["call"])[0].ledger_s
    assert split is not None and split.server_split is not None
    assert split.server_split.service == 3e-9


def test_the_slowest_warm_trial_is_shown() -> None:
    trials = facts(9.0, 1.0, 3.0).trials
    assert slowest_warm(trials) is trials[2]
    assert slowest_warm([]) is None
