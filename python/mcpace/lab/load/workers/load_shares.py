"""Shares of a load: how much of the planned load lies after a moment.

The amount of load is the area under its level: calls that are due in an open load, users times seconds in a closed one.
"""

from __future__ import annotations

from mcpace.lab.load.plan import LoadPlan


def planned_seconds(plan: LoadPlan) -> float:
    """Length of the load, including its warm-up."""
    return plan.warm_up_s + (plan.duration_s or sum(stage.duration_s for stage in plan.stages))


def remaining_share(plan: LoadPlan, from_s: float) -> float:
    """Share (0 to 1) of the measured part of the load that lies after ``from_s`` seconds."""
    whole = _area(plan, plan.warm_up_s)
    return _area(plan, max(from_s, plan.warm_up_s)) / whole if whole > 0 else 0.0


def _area(plan: LoadPlan, from_s: float) -> float:
    """Area under the level from a moment to the end."""
    level = float(plan.model.vus if plan.model.kind == "closed" else plan.model.rate)
    lines = [(plan.warm_up_s, level), (plan.duration_s or 0.0, level)]
    lines += [(stage.duration_s, stage.to) for stage in plan.stages]
    area, at_s = 0.0, 0.0
    for length_s, to in lines:
        if (rest_s := min(at_s + length_s - from_s, length_s)) > 0:
            middle = to - (to - level) * rest_s / length_s
            area += rest_s * (middle + to) / 2
        at_s, level = at_s + length_s, to
    return area
