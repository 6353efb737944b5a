"""Experiments on a live target: changes one factor at a time, in turns with the base case.

In the base case, one user calls one tool sequentially over reused connections. Each variant changes one factor. Slices
of the variants alternate in forward and reverse order, with the base case first and last in each round, so that drift
of machine and target affects all alike. The time of a call counts from when its user was free to call until the reply,
including connecting. Each slice gives one median. Slices are compared by ranks at 99 %: with a dozen factors, intervals
of 95 % would often find an effect where there is none.

Over HTTP the load engine makes the calls. Over stdio each revision has one process for all slices
(:mod:`mcpace.lab.explain.stdio_processes`). A slice begins after the process has answered, so that it includes no
start-up.

Only a tool that the server marks read-only, or that the user named, is ever called.
"""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from mcpace import _core
from mcpace.lab.errors import LabError
from mcpace.lab.explain import factors_catalogue
from mcpace.lab.explain.factors_catalogue import Variant
from mcpace.lab.explain.stdio_processes import Processes
from mcpace.lab.load import fold
from mcpace.lab.load.drive import drive
from mcpace.lab.load.experiment import Place, conversation, plan_of
from mcpace.lab.load.outcome import Outcome
from mcpace.lab.load.plan import Plan
from mcpace.lab.load.settings import LoadSettings
from mcpace.lab.machine import new_run
from mcpace.lab.processes.interruption import allow_interrupt, defer_interrupt
from mcpace.lab.progress import Progress
from mcpace.lab.statistics import rank_interval
from mcpace.lab.targets import Target
from mcpace.report.model.factors import Factor
from mcpace.report.model.load import LoadSecond
from mcpace.report.model.run import Case, Run, Subject

BUDGET_S = 45.0
"""Default time for all slices together. Connecting and listing take additional time."""
ROUNDS = 6
"""Slices of each side: slightly more than an interval requires."""
SHORTEST_S, LONGEST_S = 0.1, 1.0
CALLS_A_SLICE = 3
LEAST_SLICES = 5
"""Fewest slices of a side. With fewer, no distribution-free interval reaches CONFIDENCE."""
CONFIDENCE = 0.99
HANGS_S, HANGS_AFTER = 2.0, 20
"""A call hangs if it takes longer than HANGS_S, and longer than HANGS_AFTER calls of the base case."""
NOTABLE = 0.05
"""Smallest effect that is reported. A smaller one counts as none, even if its interval excludes 1."""


@dataclass(frozen=True)
class Question:
    """The target to examine, with its settings and the budget."""

    target: Target
    settings: LoadSettings
    budget_s: float = BUDGET_S


@dataclass(frozen=True)
class _Caller:
    """Creates mcpace's own clients for the target."""

    place: Place
    settings: LoadSettings
    token: str | None
    stack: ExitStack

    @property
    def consents(self) -> bool:
        """Whether OAuth consent is given automatically."""
        return self.token is not None and self.place.has_automatic_consent

    @property
    def scripted(self) -> bool:
        """Whether the target is one of mcpace's own profiles."""
        return self.place.is_profile

    def connected(
        self, *, standalone_get: bool = False, oauth: bool = False, address: str | None = None
    ) -> _core.Client:
        """Returns a connected client, which is disconnected at the end of the experiment at the latest."""
        token = None if oauth else self.token
        client = self.place.call_client(self.settings, token, standalone_get=standalone_get, url=address)
        self.stack.callback(client.disconnect)
        client.connect()
        return client


@dataclass
class _Tried:
    """A variant and its slices so far."""

    variant: Variant
    base: list[float] = field(default_factory=list)
    changed: list[float] = field(default_factory=list)
    calls: int = 0
    spent_s: float = 0.0
    """Time of all its slices, including starting and connecting."""
    refused: str = ""
    left_out: bool = False
    last: Outcome | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the variant has a slice in the next round."""
        return not self.refused and not self.left_out


class _Time:
    """Remaining budget, and the time limit of a call."""

    def __init__(self, budget_s: float, limit_s: float) -> None:
        self._until = time.monotonic() + budget_s
        self._limit_s = limit_s

    @property
    def left_s(self) -> float:
        """Remaining seconds; negative after the end of the budget."""
        return self._until - time.monotonic()

    def impatient(self, plan: Plan) -> Plan:
        """Shortens the plan's time limits, so that a hanging call doesn't use up or exceed the budget."""
        limit_s = min(self._limit_s, max(HANGS_S, self.left_s))
        return replace(plan, timeout_s=limit_s, drain_s=limit_s)


@dataclass
class _Base:
    """The base case and its slices."""

    plan: Plan
    processes: Processes | None = None
    """Makes the calls of a target over stdio. For other targets, the load engine makes them."""
    slices: list[tuple[float, Outcome]] = field(default_factory=list)
    spent_s: float = 0.0
    failure: str = ""
    """Reason why no call of the last slice succeeded."""

    def slice(self, length_s: float, left: _Time) -> float | None:
        """Measures another slice and returns its median; ``None`` where no call succeeded."""
        begun = time.monotonic()
        try:
            return self.processes.base(length_s) if self.processes else self._driven(length_s, left)
        except (_core.ClientProblem, LabError) as problem:
            self.failure = str(problem)
            return None
        finally:
            self.spent_s += time.monotonic() - begun

    def _driven(self, length_s: float, left: _Time) -> float | None:
        tried = _Tried(Variant("base"))
        found = _slice(left.impatient(self.plan), length_s, tried)
        if found is None:
            self.failure = tried.refused or "no reason given"
            return None
        self.slices.append(found)
        return found[0]

    def case(self, target: str) -> Case:
        """Case of the median slice."""
        typical = sorted(self.slices, key=lambda one: one[0])[(len(self.slices) - 1) // 2][1]
        return fold.case(Subject(sdk="mcpace-load", mode=self.plan.revision), target, self.plan, typical)


def run(asked: Question, progress: Progress) -> Run:
    """Tries every factor that applies to the target, within the budget.

    Ctrl-C ends the experiment early; the run is then marked partial and has the complete rounds. Raises
    :class:`LabError` where the target can't be reached or called.
    """
    result = new_run(
        "explain", {"target": asked.target.name, "budget_s": asked.budget_s, **asked.settings.as_options()}
    )
    begun = time.monotonic()
    with ExitStack() as stack:
        progress.preparing(f"asking {asked.target.name}")
        place = Place(stack, asked.target, asked.settings)
        checked, token = conversation(place, asked.settings, careful=True)
        plan = _base(plan_of(place.endpoint(token), asked.settings, checked))
        processes = Processes(stack, place, asked.settings, plan) if asked.target.command else None
        base = _Base(plan, processes)
        # Starting a process may take seconds, which count against the budget.
        started_s = time.monotonic() - begun if processes else 0.0
        left = _Time(asked.budget_s - started_s, asked.settings.timeout_s)
        first_s = base.slice(SHORTEST_S, left)
        if first_s is None:
            tool = plan.operations[0].name
            raise LabError(f"{asked.target.name}: every call to {tool} failed, so there is no baseline: {base.failure}")
        limit_s = min(asked.settings.timeout_s, max(HANGS_S, HANGS_AFTER * first_s))
        caller = _Caller(
            place, replace(asked.settings, timeout_s=min(limit_s, max(HANGS_S, asked.budget_s))), token, stack
        )
        given = _given(asked)
        variants = factors_catalogue.variants(plan, checked, caller, given)
        tried = [_Tried(processes.variant(one) if processes else one) for one in variants]
        length_s, kept = _length(first_s, len(tried), asked.budget_s)
        for one in tried[kept:]:
            one.left_out = True
        progress.begin(ROUNDS * (kept + 2))
        left = _Time(left.left_s, limit_s)
        try:
            for number in range(ROUNDS):
                _drop_what_takes_too_long(tried, base, number, left.left_s)
                _round(base, tried, length_s, number, left, progress, asked.target.name)
        except KeyboardInterrupt:
            result.partial = True
        with defer_interrupt():
            result.cases = processes.cases(asked.target.name) if processes else [base.case(asked.target.name)]
            result.factors = [_factor(one) for one in tried]
    return result


def _base(plan: Plan) -> Plan:
    return replace(plan, warm_up_s=0.0, duration_s=SHORTEST_S, stages=[], drain_s=plan.timeout_s)


def _given(asked: Question) -> frozenset[str]:
    """Names of the arguments that the user gave, which must not be changed."""
    if asked.target.profile is not None:
        return frozenset()
    return frozenset(name for arguments in asked.settings.arguments.values() for name in arguments)


def _length(call_s: float, variants: int, budget_s: float) -> tuple[float, int]:
    """Length of a slice, and the number of variants that the budget allows."""
    wanted_s = min(max(SHORTEST_S, CALLS_A_SLICE * call_s), max(LONGEST_S, call_s))
    kept = min(variants, max(1, int(budget_s / (ROUNDS * wanted_s)) - 2))
    # The rest of the budget makes slices longer, and their medians more precise.
    return min(LONGEST_S, max(wanted_s, budget_s / (ROUNDS * (kept + 2)) * 0.8)), kept


def _drop_what_takes_too_long(tried: list[_Tried], base: _Base, rounds_done: int, left_s: float) -> None:
    """Drops the slowest variants until the rest fits the budget: starting processes or sessions may take long."""
    if not rounds_done:
        return
    going = sorted((one for one in tried if one.goes_on), key=lambda one: one.spent_s)
    to_come = (ROUNDS - rounds_done) / rounds_done
    planned_s = (base.spent_s + sum(one.spent_s for one in going)) * to_come
    while len(going) > 1 and planned_s > left_s:
        costliest = going.pop()
        costliest.left_out = True
        planned_s -= costliest.spent_s * to_come


def _round(
    base: _Base, tried: list[_Tried], length_s: float, number: int, left: _Time, progress: Progress, name: str
) -> None:
    """Runs one round: a slice of each variant between two slices of the base case.

    Adds no slice to the variants where the round is interrupted or the budget has ended.
    """
    if left.left_s <= 0:
        for one in tried:
            one.left_out |= one.goes_on
        return
    where = f"{name} · round {number + 1}/{ROUNDS}"
    progress.step(f"{where} · base")
    both = [base.slice(length_s, left)]
    seen: list[tuple[_Tried, float, float | None]] = []
    for one in tried if number % 2 == 0 else tried[::-1]:
        if not one.goes_on:
            continue
        if left.left_s <= 0:
            one.left_out = True
            continue
        progress.step(f"{where} · {one.variant.code}")
        begun = time.monotonic()
        found = _measured(one, length_s, left, base_first=number % 2 == 1)
        one.spent_s += time.monotonic() - begun
        if found is not None:
            seen.append((one, *found))
    if not any(own is None for _, _, own in seen):
        _keep(seen, None)
        return
    progress.step(f"{where} · base again")
    both.append(base.slice(length_s, left))
    good = [one for one in both if one is not None]
    _keep(seen, statistics.fmean(good) if good else None)


def _keep(seen: list[tuple[_Tried, float, float | None]], base_s: float | None) -> None:
    for one, changed, own in seen:
        against = base_s if own is None else own
        if against is not None:
            one.base.append(against)
            one.changed.append(changed)


def _measured(one: _Tried, length_s: float, left: _Time, *, base_first: bool) -> tuple[float, float | None] | None:
    """Measures a slice of the variant, and of its own base case where it has one."""
    variant = one.variant
    try:
        if variant.measure is None:
            changed = _changed(one, length_s, left)
            return None if changed is None else (changed, None)
        if variant.base is None:
            return variant.measure(length_s), None
        pair = [variant.base, variant.measure]
        taken = {act: act(length_s) for act in (pair if base_first else pair[::-1])}
        return taken[variant.measure], taken[variant.base]
    except (_core.ClientProblem, LabError) as problem:
        one.refused = str(problem)
        return None


def _changed(one: _Tried, length_s: float, left: _Time) -> float | None:
    assert one.variant.plan is not None, "a variant has a plan or measures itself"
    found = _slice(left.impatient(one.variant.plan), length_s, one)
    if found is None:
        one.refused = one.refused or "every call failed"
    return found[0] if found else None


def _slice(plan: Plan, length_s: float, tried: _Tried | None = None) -> tuple[float, Outcome] | None:
    """Runs a slice and returns the median of its successful calls; ``None`` where no call succeeded."""
    with allow_interrupt():
        outcome = drive(replace(plan, duration_s=length_s), _Nobody())
    if outcome.ended == "stopped":
        raise KeyboardInterrupt
    called = [one for one in outcome.operations if one.kind == "call"]
    good = sum(one.ok for one in called)
    if tried is not None:
        tried.calls += good
        tried.last = outcome
        if not good:
            tried.refused = next((one.first_error for one in outcome.operations if one.first_error), "") or ""
    if not good:
        return None
    return max(called, key=lambda one: one.ok).latency.p50_s, outcome


def _factor(one: _Tried) -> Factor:
    variant = one.variant
    facts = _facts(one.last)
    if one.left_out and len(one.changed) < LEAST_SLICES:
        return Factor(code=variant.code, detail=variant.detail, verdict="left-out")
    if one.refused and not one.changed:
        return Factor(code=variant.code, detail=variant.detail, verdict="refused", reason=one.refused, facts=facts)
    found = Factor(
        code=variant.code,
        detail=variant.detail,
        slices=len(one.changed),
        calls=one.calls,
        verdict="unclear",
        facts=facts,
        confidence=CONFIDENCE,
    )
    if len(one.changed) < LEAST_SLICES or min(*one.base, *one.changed) <= 0:
        return found
    found.base_s, found.changed_s = statistics.median(one.base), statistics.median(one.changed)
    found.ratio, found.low, found.high = rank_interval.ratio_interval(one.changed, one.base, CONFIDENCE)
    if found.low <= 1 <= found.high:
        found.verdict = "same" if found.high / found.low < (1 + NOTABLE) ** 2 else "unclear"
    elif abs(found.ratio - 1) < NOTABLE:
        found.verdict = "same"
    else:
        found.verdict = "slower" if found.ratio > 1 else "faster"
    found.cause = factors_catalogue.cause(found)
    return found


def _facts(outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None:
        return {}
    json_replies = sum(one.json_replies for one in outcome.operations)
    sse_replies = sum(one.sse_replies for one in outcome.operations)
    connections = outcome.connections
    return {"json_replies": json_replies, "sse_replies": sse_replies, "connections": connections.opened}


class _Nobody:
    """Watcher that ignores the seconds of a slice."""

    def begin(self, planned_s: float) -> None: ...

    def second(self, second: LoadSecond) -> None: ...
