"""Gate: checks that a target is neither slower nor less correct than a base, measured in turns where both can run.

A verdict that isn't green is confirmed by a second attempt: only a problem in both attempts counts. With intervals of
95 % and a tolerance, noise alone then turns a gate red about once in a thousand comparisons. If the first side no
longer does what it did in the first attempt, the second attempt confirms nothing: the gate gives no verdict, and keeps
its measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpace.lab.clients.measure import Session
from mcpace.lab.clients.plan import Settings
from mcpace.lab.compare import comparison as run_comparison
from mcpace.lab.compare.turns import run_rounds
from mcpace.lab.errors import LabError, Unreachable, UsageProblem
from mcpace.lab.machine import new_run
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.progress import Progress
from mcpace.lab.servers.started_target import start_target
from mcpace.lab.statistics.rank_interval import MINIMUM_TRIALS
from mcpace.lab.targets import Target
from mcpace.report.model.comparison import Comparison
from mcpace.report.model.drift import Level
from mcpace.report.model.run import Case, Operation, Run

ATTEMPTS = 2
MEASURED_ALIKE = ("measure", "gate")
"""Kinds of runs that a target can be compared with."""

Doing = tuple[Operation, str | None]
"""An operation and the tool that it called."""


@dataclass(frozen=True)
class Gate:
    """The two sides of a gate, and its settings."""

    target: Target
    base: Target | Run
    """Another target, which is measured in turns; or an earlier run."""
    tolerance: float
    revision: str | None = None
    extra_root: Path | None = None
    drift_limit: Level | None = None
    """The lowest level of a change between the listings that fails the gate."""


@dataclass
class _FirstAttempt:
    """Results of the first attempt that the second must repeat to confirm it."""

    tool: str | None = None
    """The called tool."""
    of_base: set[Doing] = field(default_factory=set)
    """Operations measured on the first side."""


def run(gate: Gate, settings: Settings, progress: Progress) -> Run:
    """Measures and compares both sides, and repeats that before a negative verdict.

    Ctrl-C ends the gate early; the run is then marked partial. Raises :class:`LabError` where a side can't be reached
    at all, and :class:`UsageProblem` for a baseline of another kind.
    """
    if isinstance(gate.base, Run):
        _check_baseline(gate.base, gate.target)
    _note_few_trials(gate, settings, progress)
    options: dict[str, Any] = {"target": gate.target.name, "tolerance": gate.tolerance, "revision": gate.revision}
    if isinstance(gate.base, Target):
        options["base"] = gate.base.name
    result = new_run("gate", options | settings.as_options())
    try:
        _run_attempts(gate, settings, progress, result)
    except KeyboardInterrupt:
        result.partial = True
    return result


def run_of_files(base: Run, now: Run, tolerance: float, drift_limit: Level | None = None) -> Run:
    """Gives the verdict on two saved runs, which can't be measured again."""
    result = new_run("gate", {"tolerance": tolerance})
    result.partial = now.partial
    result.versions, result.cases = now.versions, now.cases
    result.dependencies_as_of = now.dependencies_as_of
    result.machine, result.started = now.machine, now.started
    result.comparison = run_comparison.compare_runs(base, now, tolerance, drift_limit)
    result.comparison.warnings.append("measured-once")
    return result


def _check_baseline(base: Run, target: Target) -> None:
    if base.kind not in MEASURED_ALIKE:
        raise UsageProblem(
            f"a run of mcpace {base.kind} is no baseline for {target.name}, which is measured as by mcpace "
            "measure: save one with mcpace measure --out FILE, or hold two saved runs against each other"
        )
    tools = {case.tool for case in base.cases if case.operation == "call"}
    if target.tool is not None and target.profile is None and tools and target.tool.name not in tools:
        called = ", ".join(sorted(filter(None, tools)))
        raise UsageProblem(f"the baseline has called {called}, not {target.tool.name}: name the same tool")


def _note_few_trials(gate: Gate, settings: Settings, progress: Progress) -> None:
    """Says before the measurement that it can't compare times."""
    fewest = MINIMUM_TRIALS + 1
    trials, where = settings.trials, f"--trials {settings.trials}"
    if trials >= fewest and isinstance(gate.base, Run):
        trials = max((len(case.trials_s) for case in gate.base.cases), default=0)
        where = f"a baseline of {trials} trials"
    if trials < fewest:
        progress.note(
            f"{where}: too few to compare times. Each side needs {fewest} or more, because the first is cold. "
            "This gate can fail by what broke or changed, and can't pass"
        )


def _run_attempts(gate: Gate, settings: Settings, progress: Progress, result: Run) -> None:
    first = _FirstAttempt()
    for number in range(1, ATTEMPTS + 1):
        try:
            _run_attempt(gate, settings, progress, result, first, f"attempt {number}")
        except LabError as problem:
            if result.comparison is None:
                raise
            _withdraw_verdict(result.comparison, str(problem))
        assert result.comparison is not None, "an attempt leaves its comparison"
        # A change of the listing needs no second measurement.
        if not (set(result.comparison.reasons) - {"drift"} or result.comparison.inconclusive):
            return
        if number < ATTEMPTS:
            progress.note("Looks slower or broken; measuring again to confirm")


def _withdraw_verdict(comparison: Comparison, why: str) -> None:
    """Removes the verdict: the first attempt was red, and can be neither confirmed nor refuted. A change of the listing
    remains."""
    comparison.reasons = [reason for reason in comparison.reasons if reason == "drift"]
    comparison.red = comparison.judged = bool(comparison.reasons)
    comparison.inconclusive = False
    comparison.unconfirmed = why


def _run_attempt(
    gate: Gate, settings: Settings, progress: Progress, result: Run, first: _FirstAttempt, where: str
) -> None:
    sides = [gate.base, gate.target] if isinstance(gate.base, Target) else [gate.target]
    with ExitStack() as stack:
        sessions = [
            Session(stack, place, settings, gate.revision, server_timing=True, extra_root=gate.extra_root)
            for place in _start_sides(sides, stack, gate, progress)
        ]
        if isinstance(gate.base, Run):
            sessions[0].preferred_tool = next((case.tool for case in gate.base.cases if case.operation == "call"), None)
        for session in sessions if first.tool is not None else ():
            session.preferred_tool, session.was_listed = first.tool, session.tool is not None
        progress.begin(settings.trials * 3 * len(sessions))
        try:
            run_rounds(sessions, settings.trials, progress, where)
        except KeyboardInterrupt:
            # An interrupted attempt is worth less than the complete one before it.
            if result.comparison is None:
                with defer_interrupt():
                    _conclude_attempt(gate, result, sessions, first, progress)
            raise
        with defer_interrupt():
            _conclude_attempt(gate, result, sessions, first, progress)


def _start_sides(sides: list[Target], stack: ExitStack, gate: Gate, progress: Progress) -> list[Target]:
    """Starts the programs of the sides, which run at the same time.

    Raises :class:`UsageProblem` where the second of two commands fails: both may listen at the same port.
    """
    places: list[Target] = []
    for side in sides:
        try:
            places.append(stack.enter_context(start_target(side, progress, extra_root=gate.extra_root)))
        except LabError as problem:
            if places and all(one.program is not None and one.program.command for one in sides):
                raise UsageProblem(
                    f"{side.name} can't run beside {sides[0].name}: {problem}. If both listen at the same port, give "
                    "each one its own, or save a run of the base (mcpace measure BASE --out FILE) and compare with "
                    "--baseline FILE"
                ) from problem
            raise
    return places


def _conclude_attempt(
    gate: Gate, result: Run, sessions: list[Session], first: _FirstAttempt, progress: Progress
) -> None:
    cases = [session.cases(progress) for session in sessions]
    is_first = result.comparison is None
    # A target that was reached in the first attempt and isn't any more is broken, not unreachable.
    for session in sessions if is_first else sessions[:-1]:
        if session.facts.error and not any(trial.seconds for trial in session.facts.trials):
            raise Unreachable(f"{session.facts.target}: {session.facts.error}")
    result.cases, before = cases[-1], result.cases
    try:
        _compare_sides(gate, result, cases)
    except LabError:
        result.cases = before
        raise
    assert result.comparison is not None, "just made"
    of_base = {(case.operation, case.tool): case for case in (cases[0] if len(cases) > 1 else ())}
    if is_first:
        first.tool = sessions[0].facts.tool
        first.of_base = {what for what, case in of_base.items() if case.trials_s}
    elif not result.comparison.red:
        _check_first_side(first, of_base, result.comparison, sessions[0].facts.target)


def _check_first_side(first: _FirstAttempt, of_base: Mapping[Doing, Case], comparison: Comparison, target: str) -> None:
    """Removes the verdict where the first side no longer completes an operation of the first attempt."""
    for operation, tool in sorted(first.of_base, key=str):
        case = of_base.get((operation, tool))
        if case is None or not case.trials_s:
            reason = case.error if case is not None and case.error else f"no {operation} {tool or ''}".rstrip()
            _withdraw_verdict(comparison, f"{target}: {reason}")
            return


def _compare_sides(gate: Gate, result: Run, cases: list[list[Case]]) -> None:
    if isinstance(gate.base, Run):
        found = run_comparison.compare_runs(gate.base, result, gate.tolerance, gate.drift_limit)
    else:
        pairs, only_base, only_now = run_comparison.match_cases(cases[0], cases[1])
        if not pairs:
            raise LabError(
                "the two targets have nothing in common that could be compared: name a --tool that both have"
            )
        found = run_comparison.compare_pairs(pairs, only_base, only_now, gate.tolerance, gate.drift_limit)
    earlier = result.comparison
    if earlier is not None:
        # A side whose listing fails in a later attempt has the listing of the earlier one.
        drifts = found.drifts or earlier.drifts
        found = found.model_copy(update={"attempts": [*earlier.attempts, *found.attempts], "drifts": drifts})
    result.comparison = found
    run_comparison.set_verdict(result.comparison)
