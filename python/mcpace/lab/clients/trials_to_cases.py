"""Conversion of one recording's trials, ledgers and findings to cases of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpace import _core
from mcpace.lab.clients import repeats
from mcpace.lab.inside.source_paths import with_source_path
from mcpace.report.model.drift import Listing
from mcpace.report.model.run import (
    Alternative,
    Case,
    DependencyLane,
    DependencySpan,
    Evidence,
    Finding,
    Ledger,
    Operation,
    Phase,
    ServerProcessor,
    ServerSplit,
    Subject,
    Summary,
    Waterfall,
    WaterfallExchange,
)
from mcpace.report.model.run import (
    Mark as WaterfallMark,
)
from mcpace.report.model.tokens import ToolTokens
from mcpace.report.words import findings

NANOS = 1e9
SHOWN_EVIDENCE = 12
LAYERS = ("transport", "dispatch", "service", "rest")


@dataclass(slots=True)
class Trial:
    """One operation in one session, repeated by the rules of :mod:`mcpace.lab.clients.repeats`."""

    operation: Operation
    seconds: float | None = None
    """Duration of the typical later repetition; ``None`` where one failed."""
    call: int | None = None
    """Id of that repetition in the recording; ``None`` where it left no trace on the wire."""
    failure: str | None = None
    unsupported: str | None = None
    first_s: float | None = None
    """Duration of the session's first repetition, where there are later ones."""
    calls: list[int] = field(default_factory=list)
    """Ids of all repetitions, in order."""

    def set_repetitions(self, taken_s: Sequence[float], calls: Sequence[int]) -> None:
        """Sets the durations and ids of the repetitions. A failed trial gets only the ids."""
        self.calls = list(calls)
        if self.failure is not None or self.unsupported is not None or not taken_s:
            self.call = self.calls[-1] if self.calls else None
            return
        at = repeats.typical_index(taken_s)
        self.call = self.calls[at] if self.calls else None
        self.seconds = taken_s[at]
        self.first_s = taken_s[0] if len(taken_s) > 1 else None

    def known_ids(self) -> list[int]:
        """Ids of all known repetitions."""
        return self.calls or ([self.call] if self.call is not None else [])


@dataclass
class Facts:
    """Results of one subject at one target."""

    subject: Subject
    target: str
    tool: str | None
    trials: list[Trial] = field(default_factory=list)
    explained: _core.Explained | None = None
    """Explanation of the recording; ``None`` where there is no recording."""
    waterfalls: dict[int, dict[str, Any]] = field(default_factory=dict)
    error: str | None = None
    """Reason why the subject couldn't be measured, or not to the end."""
    given_up: bool = False
    """Whether the subject was given up before its last round."""
    starts_process: bool = False
    """Whether a connect starts the server's process."""
    own_habits: frozenset[str] = frozenset()
    """Codes of findings that the measuring client causes itself. They are not reported."""
    listing_bytes: int | None = None
    """Size of the tools' descriptions, as JSON."""
    listing_tools: int | None = None
    """Number of the tools listed."""
    tools: list[ToolTokens] | None = None
    """Tokens of each tool listed; ``None`` where they were not counted."""
    result_tokens: int | None = None
    """Tokens of the largest result of the called tool."""
    listing: Listing | None = None
    result_kinds: list[str] | None = None
    """Kinds of content in the last result of the tool."""


def operation_cases(facts: Facts, operations: Sequence[Operation], *, outside: bool = True) -> list[Case]:
    """Returns a case for each requested operation, whether it could be measured or not. ``outside``: with the findings
    outside every call."""
    # Findings outside every call are reported once, with the operation that readers look at first.
    main = "call" if "call" in operations else next(reversed(operations), None)
    return [_operation_case(facts, operation, outside=outside and operation == main) for operation in operations]


def slowest_warm(trials: Iterable[Trial]) -> Trial | None:
    """The slowest warm trial, which the waterfall shows."""
    timed = [trial for trial in trials if trial.seconds is not None and trial.call is not None]
    return max(timed[1:] or timed, key=lambda trial: trial.seconds or 0.0, default=None)


def _operation_case(facts: Facts, operation: Operation, *, outside: bool) -> Case:
    trials = [trial for trial in facts.trials if trial.operation == operation]
    timed = [trial for trial in trials if trial.seconds is not None]
    seconds = [trial.seconds for trial in timed if trial.seconds is not None]
    failures = [trial.failure for trial in trials if trial.failure]
    unsupported = next((trial.unsupported for trial in trials if trial.unsupported), None)
    warm = timed[1:] or timed
    return Case(
        subject=facts.subject,
        target=facts.target,
        operation=operation,
        tool=facts.tool if operation == "call" else None,
        trials_s=seconds,
        first_s=[trial.first_s for trial in timed if trial.first_s is not None],
        starts_process=facts.starts_process and operation == "connect",
        listing_bytes=facts.listing_bytes if operation == "list" else None,
        listing_tools=facts.listing_tools if operation == "list" else None,
        tools=facts.tools if operation == "list" else None,
        result_tokens=facts.result_tokens if operation == "call" else None,
        listing=facts.listing if operation == "list" else None,
        result_kinds=facts.result_kinds if operation == "call" else None,
        summary=Summary.of(seconds) if seconds else None,
        ledger_s=_mean_ledger(facts, warm),
        findings=_case_findings(facts, trials, timed, warm) + (_session_findings(facts, timed) if outside else []),
        waterfall=_typical_waterfall(facts, timed),
        failures=failures,
        unsupported=unsupported,
        error=_case_error(facts, seconds, failures, unsupported),
        given_up=facts.given_up and operation == "connect",
    )


def _case_error(facts: Facts, seconds: list[float], failures: list[str], unsupported: str | None) -> str | None:
    if unsupported:
        return None
    if seconds and not failures:
        return facts.error
    return failures[0] if failures else facts.error


def _mean_ledger(facts: Facts, warm: list[Trial]) -> Ledger | None:
    return mean_ledger([facts.explained.sum(_call_indices(warm))]) if facts.explained is not None else None


def _call_indices(trials: Iterable[Trial]) -> list[int]:
    return [trial.call for trial in trials if trial.call is not None]


def _all_calls(trials: Iterable[Trial]) -> list[int]:
    return [call for trial in trials for call in trial.known_ids()]


def _later_calls(trials: Iterable[Trial]) -> list[int]:
    """Ids of the repetitions after the first in each session; of the first where there is no later one."""
    return [call for trial in trials for call in (trial.known_ids()[1:] or trial.known_ids())]


def mean_ledger(sums: Sequence[dict[str, Any]]) -> Ledger | None:
    """Mean ledger of all calls, from sums of ledgers; ``None`` where there is no call."""
    calls = sum(one["calls"] for one in sums)
    if not calls:
        return None
    parts = {name: sum(one["parts"][name] for one in sums) / calls / NANOS for name in sums[0]["parts"]}
    return Ledger.model_validate(
        {**parts, "server_split": _server_split(sums, calls), "server_processor": _server_processor(sums, calls)}
    )


def _server_processor(sums: Sequence[dict[str, Any]], calls: int) -> ServerProcessor | None:
    """Mean processor time of the calls for which it is known; ``None`` where it is known for none."""
    known = sum(one["processor_calls"] for one in sums)
    if not known:
        return None
    return ServerProcessor(
        processor_s=sum(one["processor_ns"] for one in sums) / known / NANOS,
        wall_s=sum(one["processor_wall_ns"] for one in sums) / known / NANOS,
        calls=known,
        of_calls=calls,
    )


def _server_split(sums: Sequence[dict[str, Any]], calls: int) -> ServerSplit | None:
    """Mean layers over all calls, so that they add up to the ledger's ``server``; ``None`` without layer timings."""
    reported = sum(one["reported"] for one in sums)
    if not reported:
        return None
    rejected = sum(one["rejected"] for one in sums)
    layers = {name: sum(one["layers"][f"{name}_ns"] for one in sums) / calls / NANOS for name in LAYERS}
    return ServerSplit(
        **layers,
        reported=reported,
        of_calls=calls,
        rejected=rejected,
        doubt=next((doubt for one in sums if (doubt := one["layers"].get("doubt"))), None),
        rejected_s=sum(one["rejected_ns"] for one in sums) / rejected / NANOS if rejected else None,
    )


def _case_findings(facts: Facts, trials: list[Trial], timed: list[Trial], warm: list[Trial]) -> list[Finding]:
    if facts.explained is None:
        return []
    called = [trial for trial in trials if trial.known_ids()]
    found = []
    for at, finding in enumerate(facts.explained.findings):
        if finding["code"] in facts.own_habits:
            continue
        # A finding in failed trials only may be the reason of the failure: a deadlock, a loop.
        of, affected = timed, facts.explained.payers(at, _all_calls(timed))
        if not affected:
            of, affected = called, facts.explained.payers(at, _all_calls(called))
        if affected:
            # A finding in cold trials or first calls only (such as discovery) gets its cost from those.
            later = facts.explained.payers(at, _later_calls(warm)) or facts.explained.payers(at, _later_calls(of))
            result = _explained_finding(facts.explained, at, finding, affected, later or affected, of)
            result.first_only = not later and any(trial.first_s is not None for trial in of)
            found.append(result)
    return sorted(found, key=lambda finding: finding.cost_s, reverse=True)


def _session_findings(facts: Facts, timed: list[Trial]) -> list[Finding]:
    """Findings outside every call, such as a stream that is reopened repeatedly, or growing memory."""
    found = []
    for at, finding in enumerate(facts.explained.findings if facts.explained is not None else []):
        if not finding["calls"]:
            assert facts.explained is not None
            result = _explained_finding(facts.explained, at, finding, [], [], timed)
            total = finding["total"]
            result.total_s = total["time_ns"] / NANOS
            result.total_requests, result.total_bytes = total["requests"], total["bytes"]
            found.append(result)
    return found


def _explained_finding(
    explained: _core.Explained,
    at: int,
    finding: dict[str, Any],
    affected: list[int],
    costed: list[int],
    timed: list[Trial],
) -> Finding:
    trial, evidence = _select_evidence(explained, finding, affected, timed)
    payers, time_ns, requests, size = explained.cost(at, costed)
    result = Finding(
        code=finding["code"],
        severity=finding["severity"],
        confidence=finding["confidence"]["level"],
        confidence_reason=finding["confidence"]["reason"],
        cost_s=time_ns / payers / NANOS if payers else 0.0,
        cost_requests=requests / payers if payers else 0.0,
        cost_bytes=size / payers if payers else 0.0,
        calls=sum(1 for trial in timed if not set(affected).isdisjoint(trial.known_ids())),
        of_calls=len(timed),
        context=with_source_path(finding["context"]),
        evidence=evidence,
        trial=trial,
        disproof=finding["disproof"],
        alternatives=[Alternative.model_validate(other) for other in finding.get("alternatives", [])],
    )
    result.advice = findings.advice_for(result.code, result.context)
    return result


def _select_evidence(
    explained: _core.Explained, finding: dict[str, Any], affected: list[int], timed: list[Trial]
) -> tuple[int | None, list[Evidence]]:
    """Selects the evidence inside one affected call, so that the events form one proof.

    The call of the waterfall is preferred, so that the page can mark the events in it; then the typical call of each
    trial. Returns the position of the call's trial with the events; ``None`` for a call that no trial reports.
    """
    items = finding["evidence"]
    shown, reported = slowest_warm(timed), {trial.call for trial in timed}
    for call in sorted(affected, key=lambda call: (shown is None or call != shown.call, call not in reported)):
        if (window := explained.window(call)) is not None:
            inside = [item for item in items if window[0] <= item["at_ns"] <= window[1]]
            if inside:
                number = next((at for at, trial in enumerate(timed) if trial.call == call), None)
                return number, _relative_evidence(inside, window[0])
    # Outside every call, times count from the first event of the evidence.
    first = explained.window(affected[0]) if affected else None
    return None, _relative_evidence(items, first[0] if first else min((item["at_ns"] for item in items), default=0))


def _relative_evidence(items: list[dict[str, Any]], start_ns: int) -> list[Evidence]:
    return [
        Evidence(at_s=(item["at_ns"] - start_ns) / NANOS, role=item["role"], event=item["event"])
        for item in items[:SHOWN_EVIDENCE]
    ]


def _typical_waterfall(facts: Facts, timed: list[Trial]) -> Waterfall | None:
    slowest = slowest_warm(timed)
    if slowest is None or slowest.call is None or slowest.call not in facts.waterfalls:
        return None
    shape = facts.waterfalls[slowest.call]
    return Waterfall(
        trial=timed.index(slowest),
        total_ms=(shape["end_ns"] - shape["start_ns"]) / 1e6,
        exchanges=[_waterfall_exchange(exchange) for exchange in shape["exchanges"]],
        dependencies=[_dependency_lane(lane) for lane in shape["dependencies"]],
    )


def _waterfall_exchange(shape: dict[str, Any]) -> WaterfallExchange:
    return WaterfallExchange(
        exchange=shape["ex"],
        connection=shape.get("conn"),
        label=_exchange_label(shape),
        status=shape.get("status"),
        phases=[
            Phase(phase=phase["phase"], from_ms=phase["from_ns"] / 1e6, to_ms=phase["to_ns"] / 1e6)
            for phase in shape["phases"]
        ],
        marks=[WaterfallMark(at_ms=mark["at_ns"] / 1e6, label=mark["label"]) for mark in shape["events"]],
        duplicate_of=shape.get("duplicate_of"),
    )


def _dependency_lane(shape: dict[str, Any]) -> DependencyLane:
    return DependencyLane(
        kind=shape["kind"],
        name=shape["name"],
        spans=[
            DependencySpan(pattern=span["pattern"], from_ms=span["from_ns"] / 1e6, to_ms=span["to_ns"] / 1e6)
            for span in shape["spans"]
        ],
        left_out=shape["left_out"],
    )


def _exchange_label(shape: dict[str, Any]) -> str:
    request = f"{shape.get('method') or ''} {shape.get('target') or ''}".strip()
    rpc = " ".join(str(shape[key]) for key in ("rpc_method", "rpc_name") if shape.get(key))
    identity = f" id {shape['rpc_id']}" if shape.get("rpc_id") is not None else ""
    return " · ".join(part for part in (f"{rpc}{identity}" if rpc else "", request) if part)
