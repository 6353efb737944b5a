"""Runs a plan in the load engine (``crates/load``), reports its progress to a watcher, and returns the outcome.

The engine runs on its own threads without the GIL; this module polls it. Ctrl-C is handled only while this module
waits, so measurements are never lost half-way.
"""

from __future__ import annotations

from typing import Protocol

from pydantic import TypeAdapter

from mcpace import _core
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.load import outcome_to_case
from mcpace.lab.load.engine_outcome import Outcome, Second
from mcpace.lab.load.plan import LoadPlan
from mcpace.lab.processes.interruption import allow_interrupt, defer_interrupt
from mcpace.report.model.load import LoadSecond

LOOK_S = 0.25
"""Seconds between two polls of the engine."""
END_LIMIT_S = 5.0
"""Seconds that the engine may take to end, beyond the time for calls in flight."""
SECONDS = TypeAdapter(list[Second])


class Watcher(Protocol):
    """Receiver of the engine's progress."""

    def begin(self, planned_s: float) -> None:
        """The load begins, with its planned duration."""

    def second(self, second: LoadSecond) -> None:
        """Another second of the load has ended."""


class Quiet:
    """Watcher that ignores the seconds."""

    def begin(self, planned_s: float) -> None: ...

    def second(self, second: LoadSecond) -> None: ...


def run_engine(plan: LoadPlan, watcher: Watcher) -> Outcome:
    """Runs a plan to its end. Ctrl-C ends it early, with ``stopped`` in the outcome.

    Raises :class:`UsageProblem` for a plan that can't be run.
    """
    try:
        engine = _core.Load(plan.to_json())
    except ValueError as error:
        raise UsageProblem(str(error)) from error
    interrupted = False
    with defer_interrupt():
        try:
            watcher.begin(plan.warm_up_s + (plan.duration_s or sum(stage.duration_s for stage in plan.stages)))
            with allow_interrupt():
                while not engine.wait(LOOK_S):
                    _report_seconds(engine, watcher)
            _report_seconds(engine, watcher)
        except KeyboardInterrupt:
            interrupted = True
            engine.stop()
        except BaseException:
            engine.stop()
            raise
        _await_end(engine, plan.drain_s + END_LIMIT_S)
        outcome = Outcome.model_validate_json(engine.result())
    # The engine may have ended by itself just before. A caller that runs several loads must still see the Ctrl-C.
    return outcome.model_copy(update={"ended": "stopped"}) if interrupted else outcome


def _report_seconds(engine: _core.Load, watcher: Watcher) -> None:
    for second in SECONDS.validate_json(engine.progress()):
        watcher.second(outcome_to_case.load_second(second))


def _await_end(engine: _core.Load, limit_s: float) -> None:
    waited_s = 0.0
    while not engine.wait(LOOK_S):
        waited_s += LOOK_S
        if waited_s > limit_s:
            raise LabError("the load engine didn't end in time: this is a fault of mcpace")
