"""Conversion of trials, ledgers and findings to cases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path
from typing import Any, cast

from mcpace import _core
from mcpace.lab.clients.trials_to_cases import Facts, Trial, operation_cases, slowest_warm
from mcpace.report.model.run import ServerSplit, Subject
from mcpace.report.words.findings import cost_of
from mcpace.report.words.labels import split_words

SECOND = 1_000_000_000


@dataclass
class Told:
    """Handmade explanation of a recording: calls spend their time at the server, findings have the given costs."""

    seconds: dict[int, float]
    findings: list[dict[str, Any]] = field(default_factory=list)
    costs: list[dict[int, float]] = field(default_factory=list)

    def add(self, costs: dict[int, float], evidence: Sequence[tuple[int, str]] = (), **more: Any) -> None:
        self.costs.append(costs)
        self.findings.append(
            {
                "code": "late-delivery",
                "context": {},
                "severity": "high",
                "confidence": {"level": "high", "reason": "repeated"},
                "calls": len(costs),
                "evidence": [{"event": n, "at_ns": at, "role": role} for n, (at, role) in enumerate(evidence)],
                "disproof": "draw",
                **more,
            }
        )

    def sum(self, calls: list[int]) -> dict[str, Any]:
        return {"calls": 0}

    def window(self, call: int) -> tuple[int, int]:
        start = call * 100 * SECOND
        return start, start + int(self.seconds[call] * SECOND)

    def payers(self, finding: int, calls: list[int]) -> list[int]:
        return [call for call in calls if call in self.costs[finding]]

    def cost(self, finding: int, calls: list[int]) -> tuple[int, int, int, int]:
        paid = [int(self.costs[finding][call] * SECOND) for call in self.payers(finding, calls)]
        return len(paid), sum(paid), len(paid), 10 * len(paid)


def facts(*seconds: float | None) -> Facts:
    result = Facts(Subject(sdk="python", version="1"), "profile:x", "greet")
    for number, value in enumerate(seconds, 1):
        result.trials.append(Trial("call", value, number, "call: boom" if value is None else None))
    return result


def told(result: Facts, costs: dict[int, float], evidence: Sequence[tuple[int, str]] = (), **more: Any) -> Facts:
    """Adds a finding to ``result``."""
    by_hand = Told({trial.call: trial.seconds or 0.0 for trial in result.trials if trial.call is not None})
    by_hand.add(costs, evidence, **more)
    result.explained = cast(_core.Explained, by_hand)
    return result


def recorded(folder: Path, *calls: tuple[float, dict[str, int] | None]) -> Facts:
    """Facts of a recording whose calls take these seconds at the server and report these layers."""
    head = {"format": "mcpace.recording/2", "instrument": "client", "started": "", "mcpace": "0", "upstream": ""}
    lines: list[dict[str, Any]] = [head]
    result = facts(*(seconds for seconds, _ in calls))
    for number, (seconds, timing) in enumerate(calls, 1):
        start = number * 100 * SECOND
        of = {"side": "back", "ex": number}
        asked = {"kind": "request", "id": str(number), "method": "tools/call", "name": "greet"}
        answered = {"kind": "result", "id": str(number), **({"timing": timing} if timing else {})}
        whole = {"bytes": 9, "digest": "0" * 15 + "1"}
        events: list[tuple[float, str, dict[str, Any]]] = [
            (0, "call-start", {"call": number, "operation": "call", "tool": "greet"}),
            (0, "request-head", {**of, "conn": 1, "method": "POST", "target": "/mcp"}),
            (0, "request-end", {**of, **whole, "messages": [asked]}),
            (seconds, "reply-head", {**of, "status": 200}),
            (seconds, "reply-body-start", of),
            (seconds, "reply-end", {**of, **whole, "ending": "complete", "messages": [answered]}),
            (seconds, "call-end", {"call": number, "outcome": "ok"}),
        ]
        lines += [{"at": start + int(after * SECOND), "event": {kind: facts}} for after, kind, facts in events]
    file = folder / "recording.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    result.explained = _core.explained([str(file)])
    return result


def test_the_cold_trial_is_apart_from_summary_and_ledger(tmp_path: Path) -> None:
    case = operation_cases(recorded(tmp_path, (9.0, None), (1.0, None), (3.0, None)), ["call"])[0]
    assert case.summary is not None and case.ledger_s is not None
    assert (case.summary.first_s, case.summary.mean_s, case.ledger_s.server) == (9.0, 2.0, 2.0)
    assert case.ledger_s.total() == case.summary.mean_s


def test_a_single_trial_stands_for_itself() -> None:
    case = operation_cases(facts(9.0), ["call"])[0]
    assert case.summary is not None and case.summary.median_s == 9.0


def test_failed_trials_are_told_and_the_others_kept() -> None:
    case = operation_cases(facts(1.0, None, 2.0), ["call"])[0]
    assert (case.trials_s, case.failures, case.error) == ([1.0, 2.0], ["call: boom"], "call: boom")


def test_an_operation_that_was_never_reached_says_why() -> None:
    broken = facts()
    broken.error = "connect: refused"
    case = operation_cases(broken, ["call"])[0]
    assert (case.trials_s, case.summary, case.error) == ([], None, "connect: refused")


def test_unsupported_is_no_failure() -> None:
    result = facts()
    result.trials.append(Trial("call", unsupported="no such API"))
    case = operation_cases(result, ["call"])[0]
    assert (case.unsupported, case.error, case.failures) == ("no such API", None, [])


def test_a_findings_cost_is_that_of_warm_calls_and_its_evidence_that_of_one() -> None:
    inside, outside = 200 * SECOND + 5, 300 * SECOND + 5
    evidence = [(inside, "result-complete"), (outside, "result-complete")]
    result = told(facts(9.0, 1.0, 3.0), {2: 0.5, 3: 1.5}, evidence)
    found = operation_cases(result, ["call"])[0].findings[0]
    assert (found.cost_s, found.calls, found.of_calls) == (1.0, 2, 3)
    # The evidence is of the slowest call, whose waterfall is shown.
    assert ([item.event for item in found.evidence], found.trial) == ([1], 2)


def test_a_finding_of_the_cold_call_only_is_costed_by_it() -> None:
    result = told(facts(9.0, 1.0), {1: 4.0})
    assert operation_cases(result, ["call"])[0].findings[0].cost_s == 4.0


def test_what_was_seen_outside_every_call_is_told_once_with_its_whole_cost() -> None:
    result = told(facts(1.0, 2.0), {}, total={"time_ns": 0, "requests": 12, "bytes": 4_000})
    by_operation = {
        case.operation: case.findings for case in operation_cases(result, ["connect", "call", "disconnect"])
    }
    assert [operation for operation, found in by_operation.items() if found] == ["call"]
    (found,) = by_operation["call"]
    assert (found.calls, found.cost_s, found.total_requests, found.total_bytes) == (0, 0.0, 12, 4_000)
    assert cost_of(found).replace("\N{NO-BREAK SPACE}", " ") == "12 extra requests + 4.0 kB in all"
    assert operation_cases(result, ["connect", "list"])[-1].findings != []


def test_other_causes_that_look_the_same_are_kept_with_what_decides() -> None:
    other = {"code": "session-leak", "decided_by": "hold-one-session"}
    result = told(facts(1.0), {1: 0.5}, alternatives=[other])
    (found,) = operation_cases(result, ["call"])[0].findings
    assert [(it.code, it.decided_by) for it in found.alternatives] == [("session-leak", "hold-one-session")]


def test_a_finding_of_another_operation_is_left_out() -> None:
    result = told(facts(1.0), {77: 4.0})
    assert operation_cases(result, ["call"])[0].findings == []


TOLD = {"transport_ns": SECOND // 10, "dispatch_ns": SECOND // 5, "service_ns": SECOND // 2}


def split_of(folder: Path, *calls: tuple[float, dict[str, int] | None]) -> ServerSplit:
    case = operation_cases(recorded(folder, *calls), ["call"])[0]
    assert case.ledger_s is not None and case.ledger_s.server_split is not None
    split = case.ledger_s.server_split
    assert split.rest is not None
    assert isclose(split.transport + split.dispatch + split.service + split.rest, case.ledger_s.server)
    return split


def test_a_servers_own_timing_becomes_its_split_and_the_rest_is_shown(tmp_path: Path) -> None:
    split = split_of(tmp_path, (1.0, TOLD))
    assert (split.transport, split.dispatch, split.service, split.rest) == (0.1, 0.2, 0.5, 0.2)
    assert (split.reported, split.of_calls, split.rejected) == (1, 1, 0)
    assert split_words(split).startswith("the server says: transport 100")


def test_calls_without_an_account_are_rest(tmp_path: Path) -> None:
    split = split_of(tmp_path, (9.0, TOLD), (1.0, TOLD), (3.0, None))
    assert (split.service, split.rest) == (0.25, 1.6)
    assert "of 1 of 2 calls" in split_words(split)


def test_an_impossible_report_splits_nothing_and_is_counted(tmp_path: Path) -> None:
    split = split_of(tmp_path, (0.5, TOLD))
    assert (split.service, split.rest, split.rejected) == (0.0, 0.5, 1)
    words = split_words(split).replace("\N{NO-BREAK SPACE}", " ")
    assert words == "the server's account of 1 of 1 calls (800 ms a call) is not believed: " + (
        "its layers are longer than the whole exchange"
    )


def test_the_slowest_warm_trial_is_shown() -> None:
    trials = facts(9.0, 1.0, 3.0).trials
    assert slowest_warm(trials) is trials[2]
    assert slowest_warm([]) is None
