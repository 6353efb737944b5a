"""Demonstrates a delayed-ACK stall on a scripted server: the same event stream in two small writes, and in one.

rust-sdk #683 took this stall for the price of SSE. The two variants differ only in how the server writes.
"""

from __future__ import annotations

from typing import Literal

from mcpace import _core
from mcpace.lab.load import delayed_ack, outcome_to_case
from mcpace.lab.load.delayed_ack import Experiment, LoadResult
from mcpace.lab.load.engine import Quiet, run_engine
from mcpace.lab.load.plan import Closed, HttpTarget, LoadPlan, Operation
from mcpace.lab.progress import Progress
from mcpace.lab.servers.server_under_test import load_result_of
from mcpace.report.model.run import Case, Subject

USERS = 10
LENGTH_S = 1.0
REVISION: Literal["2025-06-18"] = "2025-06-18"
VARIANTS: tuple[tuple[str, list[str]], ...] = (
    ("profile:simple, SSE in two writes", ["two-writes"]),
    ("profile:simple, SSE in one write", []),
)


def variant_cases(progress: Progress) -> list[Case]:
    """Returns one case for each variant. A finding is reported only after `TCP_QUICKACK` removed the stall.

    Ctrl-C is raised as ``KeyboardInterrupt``.
    """
    return [_variant_case(name, faults, progress) for name, faults in VARIANTS]


def _variant_case(name: str, faults: list[str], progress: Progress) -> Case:
    progress.step(f"{name} · load")
    target = _core.Target("simple", response="sse", faults=faults)
    try:
        plan = _load_plan(target.url, USERS, quick_ack=False)
        outcome = run_engine(plan, Quiet())
        if outcome.ended == "stopped":
            raise KeyboardInterrupt
        result = outcome_to_case.load_case(Subject(sdk="mcpace-load"), name, plan, outcome)
        seen = load_result_of([outcome], None)
        if delayed_ack.is_suspected(seen):
            progress.step(f"{name} · with TCP_QUICKACK")
            finding = delayed_ack.suspected_finding(seen, _quick_ack_experiment(target.url))
            result.findings = [finding] if finding else []
        return result
    finally:
        target.stop()


def _quick_ack_experiment(url: str) -> Experiment:
    plain, quick, alone_plain, alone_quick = (
        _measure_load(_load_plan(url, users, quick_ack=quick_ack))
        for users in (USERS, 1)
        for quick_ack in (False, True)
    )
    return Experiment(plain, quick, alone_plain, alone_quick)


def _measure_load(plan: LoadPlan) -> LoadResult:
    outcome = run_engine(plan, Quiet())
    if outcome.ended == "stopped":
        raise KeyboardInterrupt
    return load_result_of([outcome], None)


def _load_plan(url: str, users: int, *, quick_ack: bool) -> LoadPlan:
    return LoadPlan(
        target=HttpTarget(url=url),
        revision=REVISION,
        model=Closed(vus=users),
        duration_s=LENGTH_S,
        warm_up_s=0.0,
        operations=[Operation(name="greet", kind="call", tool="greet", arguments={"name": "mcpace"})],
        timeout_s=10.0,
        drain_s=1.0,
        quick_ack=quick_ack,
    )
