"""Experiments on a live target: one factor at a time, in turns with the base case.

The base case is one user who calls one tool, each call when the one before has ended, over connections that are used
again. Every factor is the same with one thing changed; slices of both take turns, there and back, so that the machine's
drift hits both alike. What a call takes is the median of each slice, from when its user was free to call until the
reply, connecting included; slices are compared by ranks.

Only a tool that the server marks read-only, or that the user named, is ever called.
"""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from mcpace import _core
from mcpace.lab import factor_list, load_fold, ranks
from mcpace.lab.errors import LabError
from mcpace.lab.factor_list import Variant
from mcpace.lab.interruption import held, interruptible
from mcpace.lab.load import Place, conversation, plan_of
from mcpace.lab.load_drive import drive
from mcpace.lab.load_outcome import Outcome
from mcpace.lab.load_plan import Plan
from mcpace.lab.load_settings import LoadSettings
from mcpace.lab.progress import Progress
from mcpace.lab.runs import new_run
from mcpace.lab.targets import Target
from mcpace.report.run import Run, Subject
from mcpace.report.run_factors import Factor
from mcpace.report.run_load import LoadSecond

BUDGET_S = 45.0
"""For all slices together; connecting and asking take some more."""
ROUNDS = 6
"""Slices of each side, as many as an interval needs at least and a few more."""
SHORTEST_S, LONGEST_S = 0.1, 1.0
CALLS_A_SLICE = 3
HANGS_S, HANGS_AFTER = 2.0, 20
"""A call hangs that takes so long, and so many times what one takes in the base case."""
NOTABLE = 0.05
"""An effect whose interval leaves 1 out and that is smaller than this is told as none."""


@dataclass(frozen=True)
class Explained:
    """How to ask."""

    target: Target
    settings: LoadSettings
    budget_s: float = BUDGET_S


@dataclass(frozen=True)
class _Caller:
    """Our own clients at the target."""

    place: Place
    settings: LoadSettings
    token: str | None
    stack: ExitStack

    @property
    def consents(self) -> bool:
        """Whether OAuth's consent needs no person."""
        return self.token is not None and self.place.consents

    @property
    def scripted(self) -> bool:
        """Whether the target is one of our profiles."""
        return self.place.scripted

    def connected(self, *, standalone_get: bool = False, oauth: bool = False) -> _core.Client:
        """One that is connected, and disconnected in the end at the latest."""
        client = self.place.calling(self.settings, None if oauth else self.token, standalone_get=standalone_get)
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
    """All its slices took so long, with what starting and connecting took."""
    refused: str = ""
    left_out: bool = False
    last: Outcome | None = None

    @property
    def goes_on(self) -> bool:
        """Whether it has a slice in the next round."""
        return not self.refused and not self.left_out


def run(asked: Explained, progress: Progress) -> Run:
    """Tries every factor that the target allows within the budget.

    Ctrl-C ends it early: the run comes back marked partial, with the rounds that were whole.
    Raises :class:`LabError` where the target can't be reached or called.
    """
    result = new_run(
        "explain", {"target": asked.target.name, "budget_s": asked.budget_s, **asked.settings.as_options()}
    )
    with ExitStack() as stack:
        progress.preparing(f"asking {asked.target.name}")
        place = Place(stack, asked.target, asked.settings)
        checked, token = conversation(place, asked.settings, careful=True)
        base = _base(plan_of(place.endpoint(token), asked.settings, checked))
        first = _slice(base, SHORTEST_S)
        if first is None:
            raise LabError(f"{asked.target.name}: no call of {base.operations[0].name} ended well, so nothing compares")
        base = _impatient(base, first[0])
        caller = _Caller(place, asked.settings, token, stack)
        tried = [_Tried(variant) for variant in factor_list.variants(base, checked, caller)]
        length_s, kept = _length(first[0], len(tried), asked.budget_s)
        for one in tried[kept:]:
            one.left_out = True
        progress.begin(ROUNDS * (kept + 1))
        begun = time.monotonic()
        try:
            for number in range(ROUNDS):
                _drop_what_takes_too_long(tried, number, asked.budget_s - (time.monotonic() - begun))
                _round(base, tried, length_s, number, progress, asked.target.name)
        except KeyboardInterrupt:
            result.partial = True
        with held():
            outcome = first[1]
            result.cases = [
                load_fold.case(Subject(sdk="mcpace-load", mode=base.revision), asked.target.name, base, outcome)
            ]
            result.factors = [_factor(one) for one in tried]
    return result


def _base(plan: Plan) -> Plan:
    return replace(plan, warm_up_s=0.0, duration_s=SHORTEST_S, stages=[], drain_s=plan.timeout_s)


def _impatient(plan: Plan, call_s: float) -> Plan:
    """A call of a variant that hangs is no reason to wait for a minute in each round."""
    limit_s = min(plan.timeout_s, max(HANGS_S, HANGS_AFTER * call_s))
    return replace(plan, timeout_s=limit_s, drain_s=limit_s)


def _length(call_s: float, variants: int, budget_s: float) -> tuple[float, int]:
    """How long a slice is, and for how many variants there is time."""
    wanted_s = min(max(SHORTEST_S, CALLS_A_SLICE * call_s), max(LONGEST_S, call_s))
    kept = min(variants, max(1, int(budget_s / (ROUNDS * wanted_s)) - 1))
    # What is left of the budget makes slices longer, and their medians steadier.
    return min(LONGEST_S, max(wanted_s, budget_s / (ROUNDS * (kept + 1)) * 0.8)), kept


def _drop_what_takes_too_long(tried: list[_Tried], rounds_done: int, left_s: float) -> None:
    """Starting processes or sessions may take more than calling: the costliest go until the rest fits into the time."""
    if not rounds_done:
        return
    going = sorted((one for one in tried if one.goes_on), key=lambda one: one.spent_s)
    planned_s = sum(one.spent_s for one in going) / rounds_done * (ROUNDS - rounds_done)
    while len(going) > 1 and planned_s > left_s:
        costliest = going.pop()
        costliest.left_out = True
        planned_s -= costliest.spent_s / rounds_done * (ROUNDS - rounds_done)


def _round(base: Plan, tried: list[_Tried], length_s: float, number: int, progress: Progress, name: str) -> None:
    where = f"{name} · round {number + 1}/{ROUNDS}"
    progress.step(f"{where} · base")
    before = _slice(base, length_s)
    for one in tried if number % 2 == 0 else tried[::-1]:
        if not one.goes_on:
            continue
        progress.step(f"{where} · {one.variant.code}")
        begun = time.monotonic()
        _pair(one, before[0] if before else None, length_s)
        one.spent_s += time.monotonic() - begun


def _pair(one: _Tried, before_s: float | None, length_s: float) -> None:
    """A slice of the variant, and the base's of the same round."""
    try:
        changed = one.variant.measure(length_s) if one.variant.measure else _changed(one, length_s)
        own = one.variant.base(length_s) if one.variant.base else before_s
    except _core.ClientProblem as problem:
        one.refused = str(problem)
        return
    if changed is None:
        one.refused = one.refused or "no call ended well so"
    elif own is not None:
        one.base.append(own)
        one.changed.append(changed)


def _changed(one: _Tried, length_s: float) -> float | None:
    assert one.variant.plan is not None, "a variant has a plan or measures itself"
    found = _slice(one.variant.plan, length_s, one)
    return found[0] if found else None


def _slice(plan: Plan, length_s: float, tried: _Tried | None = None) -> tuple[float, Outcome] | None:
    """The median of a slice's good calls; ``None`` where there was none."""
    with interruptible():
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
    if one.left_out and len(one.changed) < ranks.MINIMUM_TRIALS:
        reason = "a round of it takes too long for the budget: name a longer --budget"
        return Factor(code=variant.code, detail=variant.detail, verdict="left-out", reason=reason)
    if one.refused and not one.changed:
        return Factor(code=variant.code, detail=variant.detail, verdict="refused", reason=one.refused, facts=facts)
    found = Factor(
        code=variant.code,
        detail=variant.detail,
        slices=len(one.changed),
        calls=one.calls,
        verdict="unclear",
        facts=facts,
    )
    if len(one.changed) < ranks.MINIMUM_TRIALS or min(*one.base, *one.changed) <= 0:
        return found
    found.base_s, found.changed_s = statistics.median(one.base), statistics.median(one.changed)
    found.ratio, found.low, found.high = ranks.ratio_interval(one.changed, one.base)
    if found.low <= 1 <= found.high:
        found.verdict = "same" if found.high / found.low < (1 + NOTABLE) ** 2 else "unclear"
    elif abs(found.ratio - 1) < NOTABLE:
        found.verdict = "same"
    else:
        found.verdict = "slower" if found.ratio > 1 else "faster"
    found.cause = factor_list.cause(found)
    return found


def _facts(outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None:
        return {}
    json_replies = sum(one.json_replies for one in outcome.operations)
    sse_replies = sum(one.sse_replies for one in outcome.operations)
    connections = outcome.connections
    return {"json_replies": json_replies, "sse_replies": sse_replies, "connections": connections.opened}


class _Nobody:
    """Watches nothing: slices are too short to tell of."""

    def begin(self, planned_s: float) -> None:
        """Not told."""

    def second(self, second: LoadSecond) -> None:
        """Not told."""
