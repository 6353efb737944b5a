"""A case's trials as dots on one row: the cold trial hollow, the warm ones solid, their median a line."""

from __future__ import annotations

from markupsafe import Markup

from mcpace.report import svg
from mcpace.report.quantities import duration
from mcpace.report.run import Case
from mcpace.report.scale import Scale

HEIGHT = 28
SHOWN_TRIALS = 40
"""Dots of one row; of more trials every so manieth is drawn."""

SAID_TRIALS = 12
"""Trials that are told one by one in words."""

RADIUS = 4.5
SPREAD = (-4.0, 4.0, -1.5, 1.5)
"""Equal trials would hide each other: neighbours in time are drawn a little apart."""


def strip(case: Case, scale: Scale, baseline_s: float | None, *, kind: str) -> Markup:
    """One row. ``baseline_s`` is the first subject's median, drawn through all rows; ``kind`` colours the dots."""
    middle = HEIGHT / 2
    parts = [svg.grid(scale.ticks(), HEIGHT)]
    if baseline_s is not None:
        parts.append(svg.upright(scale.percent(baseline_s), 0, HEIGHT, "baseline"))
    if case.summary is not None:
        median = case.summary.median_s
        parts.append(
            svg.upright(scale.percent(median), 3, HEIGHT - 3, f"median {kind}", f"warm median {duration(median)}")
        )
    step = stride(case)
    for number, trial in reversed(list(enumerate(case.trials_s))[::step]):  # the cold one on top
        cold = number == 0
        y = middle if cold else middle + SPREAD[(number - 1) % len(SPREAD)]
        title = f"trial {number + 1}{' (cold)' if cold else ''}: {duration(trial)}"
        parts.append(svg.dot(scale.percent(trial), y, RADIUS, f"dot {'cold' if cold else kind}", title))
    return svg.picture(HEIGHT, strip_words(case), parts, kind="strip")


def stride(case: Case) -> int:
    """Every how manieth trial is drawn."""
    return max(1, -(-len(case.trials_s) // SHOWN_TRIALS))


def strip_words(case: Case) -> str:
    """All of a row's figures in words."""
    if not case.trials_s:
        return "no trials"
    if len(case.trials_s) > SAID_TRIALS and case.summary:
        low, high = duration(case.summary.min_s), duration(case.summary.max_s)
        return f"cold {duration(case.trials_s[0])}; {len(case.trials_s) - 1} warm from {low} to {high}"
    warm = ", ".join(duration(trial) for trial in case.trials_s[1:])
    return f"cold {duration(case.trials_s[0])}" + (f"; warm {warm}" if warm else "")
