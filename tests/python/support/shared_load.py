"""A plan for loads with workers, what a watcher hears of them, and the check of their totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mcpace.lab.load.engine_outcome import Outcome
from mcpace.lab.load.plan import Closed, HttpTarget, LoadPlan, Operation
from mcpace.report.model.load import LoadSecond, LoadWorker


class Watched:
    """A watcher that keeps what it is told, and calls ``at_second`` after each second."""

    def __init__(self, at_second: Any = None) -> None:
        self.seconds: list[LoadSecond] = []
        self.notes: list[str] = []
        self._at_second = at_second

    def preparing(self, what: str) -> None: ...
    def begin(self, planned_s: float) -> None: ...
    def note(self, text: str) -> None:
        self.notes.append(text)

    def second(self, second: LoadSecond) -> None:
        self.seconds.append(second)
        if self._at_second is not None:
            self._at_second(second)


def plan_for(url: str, **changes: Any) -> LoadPlan:
    plan = LoadPlan(
        target=HttpTarget(url=url),
        revision="2025-06-18",
        model=Closed(vus=4),
        duration_s=1.0,
        warm_up_s=0.0,
        operations=[Operation(name="echo", kind="call", tool="echo", arguments={"text": "hi"})],
        timeout_s=10.0,
        think_s=0.005,
    )
    return replace(plan, **changes)


def check_totals(outcome: Outcome, workers: Sequence[LoadWorker]) -> None:
    """All figures are the sums of the workers' own, and each call is counted once."""
    calls = [one for one in outcome.operations if one.kind == "call"]
    assert sum(one.count for one in calls) == sum(worker.calls for worker in workers)
    assert sum(one.count - one.ok for one in calls) == sum(worker.errors for worker in workers)
    assert outcome.intended == sum(worker.intended for worker in workers)
    assert outcome.begun == sum(one.count for one in calls) + outcome.unfinished
    for one in calls:
        assert sum(count for _, count in one.latency.buckets) == one.latency.count == one.ok
