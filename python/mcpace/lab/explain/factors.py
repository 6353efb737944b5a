"""Experiments on a live target: locates the time of a call, then changes one factor at a time.

:mod:`mcpace.lab.explain.ladder` locates the time. The variants then take turns with the base case.

In the base case, one user calls one tool sequentially over reused connections. Each variant changes one factor. Slices
of the variants alternate in forward and reverse order, with the base case first and last in each round, so that drift
of machine and target affects all alike. The time of a call counts from when its user was free to call until the reply,
including connecting. Each slice gives one median, and each round one pair of medians. A variant ends as soon as its
answer is clear (:mod:`mcpace.lab.statistics.sequential_ratio`), and leaves its time to the others. The intervals are at
99 %: with a dozen factors, intervals of 95 % would often find an effect where there is none.

Over HTTP the load engine makes the calls. Over stdio each revision has one process for all slices
(:mod:`mcpace.lab.explain.stdio_processes`). A slice begins after the process has answered, so that it includes no
start-up.

Only a tool that the server marks read-only, or that the user named, is ever called.
"""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mcpace import _core
from mcpace.lab.clients import measure
from mcpace.lab.clients.plan import Settings
from mcpace.lab.defaults import EXPLAIN_BUDGET_S
from mcpace.lab.errors import LabError
from mcpace.lab.explain import factors_catalogue
from mcpace.lab.explain.factors_catalogue import Variant
from mcpace.lab.explain.ladder import climb_ladder, open_session
from mcpace.lab.explain.overlap import overlap_calls
from mcpace.lab.explain.stdio_processes import Processes
from mcpace.lab.inside.evidence import FAILURES
from mcpace.lab.load import outcome_to_case
from mcpace.lab.load.engine import Quiet, run_engine
from mcpace.lab.load.engine_outcome import Outcome
from mcpace.lab.load.plan import LoadPlan
from mcpace.lab.load.run_load import Place, check_conversation, plan_of
from mcpace.lab.load.settings import LoadSettings
from mcpace.lab.machine import new_run
from mcpace.lab.processes.interruption import allow_interrupt, defer_interrupt
from mcpace.lab.progress import Progress
from mcpace.lab.servers.started_target import start_target
from mcpace.lab.statistics.sequential_ratio import (
    FEWEST_PAIRS,
    LOOKS,
    MOST_PAIRS,
    NOTABLE,
    SequentialRatio,
    sequential_ratio,
)
from mcpace.lab.targets import Target, Tool
from mcpace.report.model.factors import Factor
from mcpace.report.model.ladder import Ladder
from mcpace.report.model.run import Case, Run, Subject, Summary

SLOW_S = 4.0
"""Time of connecting and listing from which on a slice of the load engine would end before its first call."""
LADDER_SHARE = 0.25
"""Share of the budget for the ladder, whose requests locate the time of a call."""
PLANNED_ROUNDS = 6
"""Rounds that the budget is planned for. Clear answers take fewer; what time remains goes to the others."""
SHORTEST_S, LONGEST_S = 0.1, 1.0
CALLS_A_SLICE = 3
CONFIDENCE = 0.99
HANGS_S, HANGS_AFTER = 2.0, 20
"""A call hangs if it takes longer than HANGS_S, and longer than HANGS_AFTER calls of the base case."""
NO_REASON = "no reason given"
INSIDE_TRIALS = 4
"""Sessions whose calls show the inside of the tool."""
INSIDE_FAMILY = "inside"


@dataclass(frozen=True)
class Question:
    """The target to examine, with its settings and the budget."""

    target: Target
    settings: LoadSettings
    budget_s: float = EXPLAIN_BUDGET_S
    inside: bool = False
    """Whether the program that mcpace starts is looked into."""
    pid: int | None = None
    """Process that serves the target and is looked into."""


@dataclass(frozen=True)
class _Caller:
    """Creates mcpace's own clients for the target."""

    place: Place
    settings: LoadSettings
    token: str | None
    stack: ExitStack

    @property
    def has_automatic_consent(self) -> bool:
        """Whether OAuth consent is given automatically."""
        return self.token is not None and self.place.has_automatic_consent

    @property
    def is_profile(self) -> bool:
        """Whether the target is one of mcpace's own profiles."""
        return self.place.is_profile

    def connect_client(
        self, *, standalone_get: bool = False, oauth: bool = False, address: str | None = None
    ) -> _core.Client:
        """Returns a connected client, which is disconnected at the end of the experiment at the latest."""
        token = None if oauth else self.token
        client = self.place.call_client(self.settings, token, standalone_get=standalone_get, url=address)
        self.stack.callback(client.disconnect)
        client.connect()
        return client


@dataclass
class _Experiment:
    """A variant and its slices so far."""

    variant: Variant
    base: list[float] = field(default_factory=list)
    changed: list[float] = field(default_factory=list)
    calls: int = 0
    spent_s: float = 0.0
    """Time of all its slices, including starting and connecting."""
    refusal: str = ""
    is_left_out: bool = False
    largest_effect_s: float | None = None
    """Largest possible effect, where it is too small to be worth a test."""
    last: Outcome | None = None
    answer: SequentialRatio | None = None
    """Clear answer, after which the variant is not measured again."""

    @property
    def is_active(self) -> bool:
        """Whether the variant has a slice in the next round."""
        return not self.refusal and not self.is_left_out and self.answer is None

    @property
    def is_comparable(self) -> bool:
        """Whether the slices suffice for an interval."""
        return len(self.changed) >= FEWEST_PAIRS and min(*self.base, *self.changed) > 0

    def look_for_answer(self) -> None:
        """Ends the variant if a look is due and its answer is clear."""
        if len(self.changed) in LOOKS and self.is_comparable:
            found = sequential_ratio(self.changed, self.base, CONFIDENCE, is_last=False)
            self.answer = found if found.verdict != "unclear" else None


class _Budget:
    """Remaining budget, and the time limit of a call."""

    def __init__(self, budget_s: float, limit_s: float) -> None:
        self._until = time.monotonic() + budget_s
        self._limit_s = limit_s

    @property
    def left_s(self) -> float:
        """Remaining seconds; negative after the end of the budget."""
        return self._until - time.monotonic()

    def with_time_limit(self, plan: LoadPlan) -> LoadPlan:
        """Shortens the plan's time limits, so that a hanging call doesn't use up or exceed the budget."""
        limit_s = min(self._limit_s, max(HANGS_S, self.left_s))
        return replace(plan, timeout_s=limit_s, drain_s=limit_s)


@dataclass
class _Base:
    """The base case and its slices."""

    plan: LoadPlan
    processes: Processes | None = None
    """Makes the calls of a target over stdio. For other targets, the load engine makes them."""
    slices: list[tuple[float, Outcome]] = field(default_factory=list)
    calls_s: list[float] = field(default_factory=list)
    """Calls of the ladder, which stand for the base case where it has no slices."""
    spent_s: float = 0.0
    failure: str = ""
    """Reason why no call of the last slice succeeded."""

    def measure_slice(self, length_s: float, budget: _Budget) -> float | None:
        """Measures another slice and returns its median; ``None`` where no call succeeded."""
        start = time.monotonic()
        try:
            return self.processes.measure_base(length_s) if self.processes else self._measure_slice(length_s, budget)
        except (_core.ClientProblem, LabError) as problem:
            self.failure = str(problem)
            return None
        finally:
            self.spent_s += time.monotonic() - start

    def _measure_slice(self, length_s: float, budget: _Budget) -> float | None:
        experiment = _Experiment(Variant("base"))
        found = _run_slice(budget.with_time_limit(self.plan), length_s, experiment)
        if found is None:
            self.failure = experiment.refusal or NO_REASON
            return None
        self.slices.append(found)
        return found[0]

    def median_case(self, target: str) -> Case:
        """Case of the median slice."""
        if not self.slices:
            subject = Subject(sdk="mcpace-client", mode=self.plan.revision)
            tool, calls_s = self.plan.operations[0].tool, self.calls_s
            return Case(
                subject=subject,
                target=target,
                operation="call",
                tool=tool,
                trials_s=calls_s,
                summary=Summary.of(calls_s),
            )
        typical = sorted(self.slices, key=lambda one: one[0])[(len(self.slices) - 1) // 2][1]
        return outcome_to_case.load_case(
            Subject(sdk="mcpace-load", mode=self.plan.revision), target, self.plan, typical
        )


def run(question: Question, progress: Progress) -> Run:
    """Tries every factor that applies to the target, within the budget.

    Ctrl-C ends the experiment early; the run is then marked partial and has the complete rounds. Raises
    :class:`LabError` where the target can't be reached or called.
    """
    result = new_run(
        "explain", {"target": question.target.name, "budget_s": question.budget_s, **question.settings.as_options()}
    )
    start = time.monotonic()
    with ExitStack() as stack:
        started = stack.enter_context(start_target(question.target, progress, extra_root=question.settings.extra_root))
        progress.preparing(f"asking {question.target.name}")
        place = Place(stack, started, question.settings)
        checked, token = check_conversation(place, question.settings, careful=True)
        plan = _base_plan(plan_of(place.plan_target(token), question.settings, checked))
        processes = Processes(stack, place, question.settings, plan) if question.target.command else None
        base = _Base(plan, processes)
        connected_s = time.monotonic() - start
        budget = _Budget(question.budget_s - connected_s, question.settings.timeout_s)
        is_slow = processes is None and connected_s >= SLOW_S
        first_s = None if is_slow else base.measure_slice(SHORTEST_S, budget)
        if first_s is None and base.failure == NO_REASON:
            # On a busy machine, opening the session may take longer than the shortest slice, and no call starts.
            first_s = base.measure_slice(LONGEST_S, budget)
        if first_s is None and not is_slow:
            raise _no_baseline(question, plan, base.failure)
        usual_s = connected_s if first_s is None else first_s
        limit_s = min(question.settings.timeout_s, max(HANGS_S, HANGS_AFTER * usual_s))
        progress.preparing(f"locating the time of a call to {plan.operations[0].name}")
        with allow_interrupt(), suppress(LabError):
            # A target that refuses the ladder's own session may still answer the load engine.
            limited = replace(plan, timeout_s=limit_s)
            with open_session(limited) as session:
                result.ladder = climb_ladder(limited, session, question.budget_s * LADDER_SHARE)
                left_s = min(question.budget_s * LADDER_SHARE, budget.left_s)
                overlap_calls(limited, session, result.ladder, left_s)
        if first_s is None:
            tool = next((rung for rung in result.ladder.rungs if rung.code == "tool"), None) if result.ladder else None
            if tool is None or tool.median_s is None:
                raise _no_baseline(question, plan, tool.failure if tool else NO_REASON)
            base.calls_s, first_s = tool.samples_s, tool.median_s
        caller = _Caller(
            place, replace(question.settings, timeout_s=min(limit_s, max(HANGS_S, question.budget_s))), token, stack
        )
        given = _given_arguments(question)
        variants = factors_catalogue.applicable_variants(plan, checked, caller, given)
        experiments = [_Experiment(processes.stdio_variant(variant) if processes else variant) for variant in variants]
        if result.ladder is not None:
            _leave_out_negligible(experiments, result.ladder)
        going = [experiment for experiment in experiments if experiment.is_active]
        length_s, kept = _slice_length(first_s, len(going), max(budget.left_s, 0.0))
        if result.ladder is not None and budget.left_s < FEWEST_PAIRS * 3 * first_s:
            kept = 0  # one variant and the base case around it don't reach the least number of slices
        for experiment in going[kept:]:
            experiment.is_left_out = True
        progress.begin(PLANNED_ROUNDS * (kept + 2))
        budget = _Budget(budget.left_s, limit_s)
        try:
            for number in range(MOST_PAIRS):
                if not any(experiment.is_active for experiment in experiments):
                    break
                _drop_what_takes_too_long(experiments, base, number, budget.left_s)
                _run_round(base, experiments, length_s, number, budget, progress, question.target.name)
        except KeyboardInterrupt:
            result.partial = True
        with defer_interrupt():
            result.cases = (
                processes.process_cases(question.target.name) if processes else [base.median_case(question.target.name)]
            )
            result.factors = [_measured_factor(experiment) for experiment in experiments]
    if (question.inside or question.pid is not None) and not result.partial:
        _look_inside(question, plan, result, progress)
    return result


def _look_inside(question: Question, plan: LoadPlan, result: Run, progress: Progress) -> None:
    """Adds the inside of the tool, from calls one at a time to a program of their own. The ladder and the factors were
    measured without instrumentation, so their times are true."""
    operation = plan.operations[0]
    assert operation.tool is not None, "the experiment calls a tool"
    settings = Settings(
        trials=INSIDE_TRIALS,
        hold_s=question.settings.hold_s,
        faults=question.settings.faults,
        time_limit_s=question.settings.timeout_s,
        may_run_fewer=True,
    )
    target = replace(question.target, tool=Tool(operation.tool, operation.arguments or {}))
    try:
        looked = measure.run(
            target,
            settings,
            progress,
            revision=question.settings.revision,
            extra_root=question.settings.extra_root,
            inside=question.inside,
            pid=question.pid,
        )
    except FAILURES as problem:
        progress.note(f"the server could not be looked into: {problem}")
        return
    result.partial |= looked.partial
    own, found = (next((case for case in run.cases if case.operation == "call"), None) for run in (result, looked))
    if own is not None and found is not None:
        own.inside = found.inside
        codes = {one["code"] for one in _core.catalogue()["causes"] if one["family"] == INSIDE_FAMILY}
        own.findings += [finding for finding in found.findings if finding.code in codes]


def _no_baseline(question: Question, plan: LoadPlan, reason: str) -> LabError:
    tool = plan.operations[0].name
    return LabError(f"{question.target.name}: every call to {tool} failed, so there is no baseline: {reason}")


def _base_plan(plan: LoadPlan) -> LoadPlan:
    return replace(plan, warm_up_s=0.0, duration_s=SHORTEST_S, stages=[], drain_s=plan.timeout_s)


def _given_arguments(question: Question) -> frozenset[str]:
    """Names of the arguments that the user gave, which must not be changed."""
    if question.target.profile is not None:
        return frozenset()
    return frozenset(name for arguments in question.settings.arguments.values() for name in arguments)


def _leave_out_negligible(experiments: list[_Experiment], ladder: Ladder) -> None:
    """Leaves out the variants whose largest possible effect is too small to be reported."""
    call_s = next((rung.median_s for rung in ladder.rungs if rung.code == "tool" and rung.median_s is not None), None)
    for experiment in experiments:
        effect_s = factors_catalogue.largest_effect(experiment.variant.code, ladder)
        if call_s is not None and effect_s is not None and effect_s < NOTABLE * call_s:
            experiment.is_left_out, experiment.largest_effect_s = True, effect_s


def _slice_length(call_s: float, variants: int, budget_s: float) -> tuple[float, int]:
    """Length of a slice, and the number of variants that the budget allows."""
    wanted_s = min(max(SHORTEST_S, CALLS_A_SLICE * call_s), max(LONGEST_S, call_s))
    kept = min(variants, max(1, int(budget_s / (PLANNED_ROUNDS * wanted_s)) - 2))
    # The rest of the budget makes slices longer, and their medians more precise.
    return min(LONGEST_S, max(wanted_s, budget_s / (PLANNED_ROUNDS * (kept + 2)) * 0.8)), kept


def _drop_what_takes_too_long(experiments: list[_Experiment], base: _Base, rounds_done: int, left_s: float) -> None:
    """Drops the slowest variants until the rest fits the budget: starting processes or sessions may take long."""
    if not rounds_done:
        return
    going = sorted(
        (experiment for experiment in experiments if experiment.is_active), key=lambda experiment: experiment.spent_s
    )
    # Past the planned rounds, each further one is made if it fits.
    to_come = max(PLANNED_ROUNDS - rounds_done, 1) / rounds_done
    planned_s = (base.spent_s + sum(experiment.spent_s for experiment in going)) * to_come
    while len(going) > 1 and planned_s > left_s:
        costliest = going.pop()
        costliest.is_left_out = True
        planned_s -= costliest.spent_s * to_come


def _run_round(
    base: _Base,
    experiments: list[_Experiment],
    length_s: float,
    number: int,
    budget: _Budget,
    progress: Progress,
    name: str,
) -> None:
    """Runs one round: a slice of each variant between two slices of the base case.

    Adds no slice to the variants where the round is interrupted or the budget has ended.
    """
    if budget.left_s <= 0:
        for experiment in experiments:
            experiment.is_left_out |= experiment.is_active
        return
    where = f"{name} · round {number + 1}"
    progress.step(f"{where} · base")
    both = [base.measure_slice(length_s, budget)]
    slices: list[tuple[_Experiment, float, float | None]] = []
    for experiment in experiments if number % 2 == 0 else experiments[::-1]:
        if not experiment.is_active:
            continue
        if budget.left_s <= 0:
            experiment.is_left_out = True
            continue
        progress.step(f"{where} · {experiment.variant.code}")
        start = time.monotonic()
        found = _measure_variant(experiment, length_s, budget, base_first=number % 2 == 1)
        experiment.spent_s += time.monotonic() - start
        if found is not None:
            slices.append((experiment, *found))
    if not any(own is None for _, _, own in slices):
        _store_slices(slices, None)
        return
    progress.step(f"{where} · base again")
    both.append(base.measure_slice(length_s, budget))
    good = [one for one in both if one is not None]
    _store_slices(slices, statistics.fmean(good) if good else None)


def _store_slices(slices: list[tuple[_Experiment, float, float | None]], base_s: float | None) -> None:
    for experiment, changed, own in slices:
        against = base_s if own is None else own
        if against is not None:
            experiment.base.append(against)
            experiment.changed.append(changed)
            experiment.look_for_answer()


def _measure_variant(
    experiment: _Experiment, length_s: float, budget: _Budget, *, base_first: bool
) -> tuple[float, float | None] | None:
    """Measures a slice of the variant, and of its own base case where it has one."""
    variant = experiment.variant
    try:
        if variant.measure is None:
            changed = _measure_changed(experiment, length_s, budget)
            return None if changed is None else (changed, None)
        if variant.base is None:
            return variant.measure(length_s), None
        pair = [variant.base, variant.measure]
        medians = {act: act(length_s) for act in (pair if base_first else pair[::-1])}
        return medians[variant.measure], medians[variant.base]
    except (_core.ClientProblem, LabError) as problem:
        experiment.refusal = str(problem)
        return None


def _measure_changed(experiment: _Experiment, length_s: float, budget: _Budget) -> float | None:
    assert experiment.variant.plan is not None, "a variant has a plan or measures itself"
    found = _run_slice(budget.with_time_limit(experiment.variant.plan), length_s, experiment)
    if found is None:
        experiment.refusal = experiment.refusal or "every call failed"
    return found[0] if found else None


def _run_slice(plan: LoadPlan, length_s: float, experiment: _Experiment | None = None) -> tuple[float, Outcome] | None:
    """Runs a slice and returns the median of its successful calls; ``None`` where no call succeeded."""
    with allow_interrupt():
        outcome = run_engine(replace(plan, duration_s=length_s), Quiet())
    if outcome.ended == "stopped":
        raise KeyboardInterrupt
    called = [one for one in outcome.operations if one.kind == "call"]
    good = sum(one.ok for one in called)
    if experiment is not None:
        experiment.calls += good
        experiment.last = outcome
        if not good:
            experiment.refusal = next((one.first_error for one in outcome.operations if one.first_error), "") or ""
    if not good:
        return None
    return max(called, key=lambda one: one.ok).latency.p50_s, outcome


def _measured_factor(experiment: _Experiment) -> Factor:
    variant = experiment.variant
    facts = _outcome_facts(experiment.last)
    if experiment.is_left_out and len(experiment.changed) < FEWEST_PAIRS:
        limit_s = experiment.largest_effect_s
        facts = {} if limit_s is None else {"largest_effect_s": limit_s}
        return Factor(code=variant.code, detail=variant.detail, verdict="left-out", facts=facts)
    if experiment.refusal and not experiment.changed:
        return Factor(
            code=variant.code, detail=variant.detail, verdict="refused", reason=experiment.refusal, facts=facts
        )
    found = Factor(
        code=variant.code,
        detail=variant.detail,
        slices=len(experiment.changed),
        calls=experiment.calls,
        verdict="unclear",
        facts=facts,
        confidence=CONFIDENCE,
    )
    if not experiment.is_comparable:
        return found
    found.base_s, found.changed_s = statistics.median(experiment.base), statistics.median(experiment.changed)
    answer = experiment.answer or sequential_ratio(experiment.changed, experiment.base, CONFIDENCE, is_last=True)
    found.ratio, found.low, found.high, found.verdict = answer.ratio, answer.low, answer.high, answer.verdict
    found.cause = factors_catalogue.proven_finding(found)
    return found


def _outcome_facts(outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None:
        return {}
    json_replies = sum(one.json_replies for one in outcome.operations)
    sse_replies = sum(one.sse_replies for one in outcome.operations)
    connections = outcome.connections
    return {"json_replies": json_replies, "sse_replies": sse_replies, "connections": connections.opened}
