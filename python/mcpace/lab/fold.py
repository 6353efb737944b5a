"""Folds one recording's trials, ledgers and findings into cases of a run. Pure: facts in, models out."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpace.report import words
from mcpace.report.run import (
    Alternative,
    Case,
    Evidence,
    Finding,
    Ledger,
    Operation,
    Phase,
    ServerSplit,
    Subject,
    Summary,
    Waterfall,
    WaterfallExchange,
)
from mcpace.report.run import (
    Mark as WaterfallMark,
)

NANOS = 1e9
SHOWN_EVIDENCE = 12
LAYERS = ("transport", "dispatch", "service", "rest")


@dataclass
class Trial:
    """One operation, once."""

    operation: Operation
    seconds: float | None = None
    """``None`` where it failed."""
    call: int | None = None
    """Its id in the recording; ``None`` where it left no trace on the wire."""
    failure: str | None = None
    unsupported: str | None = None


@dataclass
class Facts:
    """What one subject did at one target."""

    subject: Subject
    target: str
    tool: str | None
    trials: list[Trial] = field(default_factory=list)
    ledgers: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    waterfalls: dict[int, dict[str, Any]] = field(default_factory=dict)
    error: str | None = None
    """Why the subject could not be measured at all, or to the end."""
    given_up: bool = False
    """Whether it was given up before its last round."""


def cases(facts: Facts, operations: Sequence[Operation]) -> list[Case]:
    """A case for each operation that was asked for, whether it could be measured or not."""
    # What was seen outside every call is told once, where readers look first.
    told = "call" if "call" in operations else next(reversed(operations), None)
    return [_case(facts, operation, outside=operation == told) for operation in operations]


def slowest_warm(trials: Iterable[Trial]) -> Trial | None:
    """The trial that a waterfall should show."""
    timed = [trial for trial in trials if trial.seconds is not None and trial.call is not None]
    return max(timed[1:] or timed, key=lambda trial: trial.seconds or 0.0, default=None)


def _case(facts: Facts, operation: Operation, *, outside: bool) -> Case:
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
        summary=Summary.of(seconds) if seconds else None,
        ledger_s=_ledger(facts.ledgers, warm),
        findings=_findings(facts, trials, timed, warm) + (_outside(facts, timed) if outside else []),
        waterfall=_waterfall(facts, timed),
        failures=failures,
        unsupported=unsupported,
        error=_error(facts, seconds, failures, unsupported),
        given_up=facts.given_up and operation == "connect",
    )


def _error(facts: Facts, seconds: list[float], failures: list[str], unsupported: str | None) -> str | None:
    if unsupported:
        return None
    if seconds and not failures:
        return facts.error
    return failures[0] if failures else facts.error


def _ledger(ledgers: list[dict[str, Any]], warm: list[Trial]) -> Ledger | None:
    calls = {trial.call for trial in warm}
    return mean_ledger([ledger for ledger in ledgers if ledger["call"] in calls])


def mean_ledger(chosen: list[dict[str, Any]]) -> Ledger | None:
    """The mean of calls' ledgers; ``None`` of none."""
    if not chosen:
        return None
    parts = {name: _mean(ledger["parts"][name] for ledger in chosen) for name in chosen[0]["parts"]}
    return Ledger.model_validate({**parts, "server_split": _split(chosen)})


def _split(ledgers: list[dict[str, Any]]) -> ServerSplit | None:
    """Over all calls, so that the layers add up to the ledger's ``server``: without an account it is all rest."""
    told = [ledger for ledger in ledgers if ledger.get("split")]
    if not told:
        return None
    doubted = [ledger for ledger in told if ledger["split"].get("doubt")]
    whole = [ledger.get("split") or {"rest_ns": ledger["parts"]["server"]} for ledger in ledgers]
    layers = {name: _mean(one.get(f"{name}_ns", 0) for one in whole) for name in LAYERS}
    return ServerSplit(
        **layers,
        told=len(told),
        of_calls=len(ledgers),
        doubted=len(doubted),
        doubt=doubted[0]["split"]["doubt"] if doubted else None,
        doubted_s=_mean(sum(one["told"][f"{name}_ns"] for name in LAYERS[:3]) for one in doubted) if doubted else None,
    )


def _mean(nanos: Iterable[int]) -> float:
    return statistics.fmean(nanos) / NANOS


def _findings(facts: Facts, trials: list[Trial], timed: list[Trial], warm: list[Trial]) -> list[Finding]:
    called = [trial for trial in trials if trial.call is not None]
    calls, all_calls = {trial.call for trial in timed}, {trial.call for trial in called}
    warm_calls = {trial.call for trial in warm}
    found = []
    for finding in facts.findings:
        # What shows in failed trials only may be why they failed: a deadlock, a loop.
        affected = [cost for cost in finding["calls"] if cost["call"] in calls]
        of = timed if affected else called
        affected = affected or [cost for cost in finding["calls"] if cost["call"] in all_calls]
        if affected:
            # A cause that shows in the cold trial only (discovery, say) is costed by that trial.
            costed = [cost for cost in affected if cost["call"] in warm_calls] or affected
            found.append(_finding(facts, finding, affected, costed, of))
    return sorted(found, key=lambda finding: finding.cost_s, reverse=True)


def _outside(facts: Facts, timed: list[Trial]) -> list[Finding]:
    """What was seen outside every call: a stream that is opened again and again, memory that grows."""
    found = []
    for finding in facts.findings:
        if not finding["calls"]:
            told = _finding(facts, finding, [], [], timed)
            total = finding["total"]
            told.total_s = total["time_ns"] / NANOS
            told.total_requests, told.total_bytes = total["requests"], total["bytes"]
            found.append(told)
    return found


def _finding(
    facts: Facts,
    finding: dict[str, Any],
    affected: list[dict[str, Any]],
    costed: list[dict[str, Any]],
    timed: list[Trial],
) -> Finding:
    trial, evidence = _evidence(facts, finding, affected, timed)
    result = Finding(
        code=finding["code"],
        severity=finding["severity"],
        confidence=finding["confidence"]["level"],
        confidence_reason=finding["confidence"]["reason"],
        cost_s=_mean(cost["time_ns"] for cost in costed) if costed else 0.0,
        cost_requests=statistics.fmean(cost["requests"] for cost in costed) if costed else 0.0,
        cost_bytes=statistics.fmean(cost["bytes"] for cost in costed) if costed else 0.0,
        calls=len(affected),
        of_calls=len(timed),
        context=finding["context"],
        evidence=evidence,
        trial=trial,
        disproof=finding["disproof"],
        alternatives=[Alternative.model_validate(other) for other in finding.get("alternatives", [])],
    )
    result.advice = words.advice_for(result.code, result.context)
    return result


def _evidence(
    facts: Facts, finding: dict[str, Any], affected: list[dict[str, Any]], timed: list[Trial]
) -> tuple[int | None, list[Evidence]]:
    """The events inside one affected call, where there are any: one call's proof, not pieces of several. The call
    whose waterfall is shown comes first, so that they can be pointed at in it. Which trial it is comes with them."""
    items = finding["evidence"]
    ledgers = {ledger["call"]: ledger for ledger in facts.ledgers}
    shown = slowest_warm(timed)
    calls = [cost["call"] for cost in affected]
    for call in sorted(calls, key=lambda call: shown is None or call != shown.call):
        if (ledger := ledgers.get(call)) is not None:
            inside = [item for item in items if ledger["start_ns"] <= item["at_ns"] <= ledger["end_ns"]]
            if inside:
                number = next((at for at, trial in enumerate(timed) if trial.call == call), None)
                return number, _relative(inside, ledger["start_ns"])
    # Outside every call, times count from the first event of the proof.
    first = ledgers.get(calls[0]) if calls else None
    return None, _relative(items, first["start_ns"] if first else min((item["at_ns"] for item in items), default=0))


def _relative(items: list[dict[str, Any]], start_ns: int) -> list[Evidence]:
    return [
        Evidence(at_s=(item["at_ns"] - start_ns) / NANOS, role=item["role"], event=item["event"])
        for item in items[:SHOWN_EVIDENCE]
    ]


def _waterfall(facts: Facts, timed: list[Trial]) -> Waterfall | None:
    slowest = slowest_warm(timed)
    if slowest is None or slowest.call is None or slowest.call not in facts.waterfalls:
        return None
    shape = facts.waterfalls[slowest.call]
    return Waterfall(
        trial=timed.index(slowest),
        total_ms=(shape["end_ns"] - shape["start_ns"]) / 1e6,
        exchanges=[_exchange(exchange) for exchange in shape["exchanges"]],
    )


def _exchange(shape: dict[str, Any]) -> WaterfallExchange:
    return WaterfallExchange(
        exchange=shape["ex"],
        connection=shape.get("conn"),
        label=_label(shape),
        status=shape.get("status"),
        phases=[
            Phase(phase=phase["phase"], from_ms=phase["from_ns"] / 1e6, to_ms=phase["to_ns"] / 1e6)
            for phase in shape["phases"]
        ],
        marks=[WaterfallMark(at_ms=mark["at_ns"] / 1e6, label=mark["label"]) for mark in shape["events"]],
        duplicate_of=shape.get("duplicate_of"),
    )


def _label(shape: dict[str, Any]) -> str:
    request = f"{shape.get('method') or ''} {shape.get('target') or ''}".strip()
    rpc = " ".join(str(shape[key]) for key in ("rpc_method", "rpc_name") if shape.get(key))
    identity = f" id {shape['rpc_id']}" if shape.get("rpc_id") is not None else ""
    return " · ".join(part for part in (f"{rpc}{identity}" if rpc else "", request) if part)
