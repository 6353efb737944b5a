"""Drives the load engine (``crates/load``): a plan goes in, an outcome comes out, and somebody is told how it goes.

The engine runs on threads of its own, outside the interpreter's lock; this side only asks it now and then. Ctrl-C is
heard while it waits and nowhere else: what was measured can't be torn.
"""

from __future__ import annotations

from typing import Protocol

from pydantic import TypeAdapter

from mcpace import _core
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.load import fold
from mcpace.lab.load.outcome import Outcome, Second
from mcpace.lab.load.plan import Plan
from mcpace.lab.processes.interruption import held, interruptible
from mcpace.report.model.load import LoadSecond

LOOK_S = 0.25
"""How often the engine is asked."""
END_LIMIT_S = 5.0
"""What it may take to end, beyond the time that calls under way have."""
SECONDS = TypeAdapter(list[Second])


class Watcher(Protocol):
    """Told how the engine goes."""

    def begin(self, planned_s: float) -> None:
        """The load begins and is to take so long."""

    def second(self, second: LoadSecond) -> None:
        """Another second is over."""


def drive(plan: Plan, watcher: Watcher) -> Outcome:
    """Runs a plan to its end; Ctrl-C ends it early, and the outcome says so.

    Raises :class:`UsageProblem` for a plan that can't be run.
    """
    try:
        engine = _core.Load(plan.to_json())
    except ValueError as error:
        raise UsageProblem(str(error)) from error
    interrupted = False
    with held():
        try:
            watcher.begin(plan.warm_up_s + (plan.duration_s or sum(stage.duration_s for stage in plan.stages)))
            with interruptible():
                while not engine.wait(LOOK_S):
                    _tell(engine, watcher)
            _tell(engine, watcher)
        except KeyboardInterrupt:
            interrupted = True
            engine.stop()
        except BaseException:
            engine.stop()
            raise
        _await_end(engine, plan.drain_s + END_LIMIT_S)
        outcome = Outcome.model_validate_json(engine.result())
    # The engine may have ended by itself a moment before. Ctrl-C comes once: who goes on to the next load must hear it.
    return outcome.model_copy(update={"ended": "stopped"}) if interrupted else outcome


def _tell(engine: _core.Load, watcher: Watcher) -> None:
    for second in SECONDS.validate_json(engine.progress()):
        watcher.second(fold.second(second))


def _await_end(engine: _core.Load, limit_s: float) -> None:
    waited_s = 0.0
    while not engine.wait(LOOK_S):
        waited_s += LOOK_S
        if waited_s > limit_s:
            raise LabError("the load engine didn't end in time: this is a fault of mcpace")
