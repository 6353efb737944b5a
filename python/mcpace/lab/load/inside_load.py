"""Looks into a server in a separate stretch of load after the measurement. The measurement itself runs without
instrumentation.

Design constraint: Calls overlap, so a time does not show which call a span or a sample belongs to. The result is sums
over the stretch, divided by the number of calls.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from mcpace import _core
from mcpace.lab.errors import LabError
from mcpace.lab.inside.evidence import FAILURES, InsideEvidence, open_evidence
from mcpace.lab.inside.tool_time import NANOS, mean_row, mean_tables
from mcpace.lab.load.engine import Quiet, run_engine
from mcpace.lab.load.engine_outcome import Outcome
from mcpace.lab.load.histogram import combine_histograms, histogram_latencies
from mcpace.lab.load.outcome_to_case import CALLS
from mcpace.lab.load.plan import LoadPlan
from mcpace.lab.load.run_load import Place, Watcher
from mcpace.lab.load.settings import LoadSettings
from mcpace.lab.processes.interruption import allow_interrupt
from mcpace.lab.servers.started_target import start_target
from mcpace.lab.targets import Target
from mcpace.report.model.inside import AddedTime, InsideSums
from mcpace.report.model.run import Case

LONGEST_STRETCH_S = 10.0
LEAST_CALLS = 10
"""Calls of each user in the stretch, even if it takes longer: calls at its edges belong to it only in part."""
SLOWEST_STRETCH_S = 30.0
WARM_UP_S = 1.0


@dataclass(frozen=True)
class Stretch:
    """A load during which a server was looked into."""

    start_ns: int
    """End of the warm-up, on the monotonic clock."""
    outcome: Outcome


def look_inside(
    target: Target, settings: LoadSettings, plan: LoadPlan, case: Case, watcher: Watcher
) -> InsideSums | None:
    """Puts a stretch of the plan's load on the target, which is started anew with its instrumentation.

    Returns ``None``, with a note, where that fails: ``case`` is measured already.
    """
    try:
        with ExitStack() as stack, allow_interrupt():
            evidence = stack.enter_context(open_evidence(target, watcher.note, settings.pid))
            with start_target(target, watcher, evidence, settings.extra_root) as started:
                place = Place(stack, started, settings)
                watcher.preparing(f"looking inside {target.name} under load")
                token = _access_token(place, needs_token=target.auth != "none")
                load = _stretch_plan(replace(plan, target=place.plan_target(token)), case)
                stretch = run_stretch(load, evidence)
            return sum_stretch(stretch, evidence, place.client.recording(), case)
    except FAILURES as problem:
        watcher.note(f"the server could not be looked into: {problem}")
        return None


def run_stretch(plan: LoadPlan, evidence: InsideEvidence) -> Stretch:
    """Runs the plan, and takes the last evidence that only a running program gives.

    Raises :class:`LabError` where the load fails.
    """
    start_ns = time.perf_counter_ns() + round(plan.warm_up_s * NANOS)
    outcome = run_engine(plan, Quiet())
    if outcome.ended == "stopped":
        raise KeyboardInterrupt
    if outcome.ended == "failed":
        raise LabError(outcome.failure or "the load failed")
    evidence.end_sampling()
    return Stretch(start_ns, outcome)


def sum_stretch(stretch: Stretch, evidence: InsideEvidence, recording: _core.Recording, case: Case) -> InsideSums:
    """Adds up what the server's programs did in the stretch. The programs that mcpace started have ended. ``case`` has
    the load without evidence.
    """
    evidence.add_to(recording)
    start_ns, outcome = stretch.start_ns, stretch.outcome
    sums = recording.inside_sums(start_ns, start_ns + round(outcome.measured_s * NANOS))
    missing = [reason for _, reason in recording.explained().missing_sources]
    return _means_of(sums, outcome, missing, case)


def _access_token(place: Place, *, needs_token: bool) -> str | None:
    if not needs_token:
        return None
    try:
        place.client.connect()
        return place.client.token()
    finally:
        place.client.disconnect()


def _stretch_plan(plan: LoadPlan, case: Case) -> LoadPlan:
    """The plan's load without ramps: at its highest level, for a limited time."""
    planned_s = min(plan.duration_s or sum(stage.duration_s for stage in plan.stages), LONGEST_STRETCH_S)
    call_s = case.service_s.p50 if case.service_s is not None else 0.0
    duration_s = max(planned_s, min(LEAST_CALLS * call_s, SLOWEST_STRETCH_S))
    model = plan.model
    if plan.stages:
        highest = max(stage.to for stage in plan.stages)
        model = replace(model, vus=round(highest)) if model.kind == "closed" else replace(model, rate=highest)
    return replace(plan, model=model, stages=[], duration_s=duration_s, warm_up_s=WARM_UP_S, max_calls=None)


def _means_of(sums: dict[str, Any], outcome: Outcome, missing: list[str], case: Case) -> InsideSums:
    called = [one for one in outcome.operations if one.kind in CALLS]
    calls = sum(one.ok for one in called)
    latency, plain = histogram_latencies(combine_histograms(one.service for one in called)), case.service_s
    added = None
    if latency is not None and plain is not None and plain.p50 > 0:
        added = AddedTime(plain_s=plain.p50, ratio=latency.p50 / plain.p50, rounds=1)
    stretch_s = sums["stretch_ns"] / NANOS
    if not calls:
        return InsideSums(calls=0, stretch_s=stretch_s, missing=missing)
    return InsideSums.model_validate(
        {
            "calls": calls,
            "stretch_s": stretch_s,
            **mean_row({"running_ns": sums["running_ns"]}, calls),
            **mean_tables(sums, calls),
            **{name: sums[name] for name in ("samples", "spans")},
            "missing": missing,
            "added": added,
        }
    )
