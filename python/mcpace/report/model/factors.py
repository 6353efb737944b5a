"""The part of a Run that experiments on a live target add: one factor at a time, its effect with an interval.

Design constraint: data only.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mcpace.report.model.base import Facts, Model, Number, Whole


class Factor(Model):
    """One thing that was done differently, and what a call then took."""

    code: str
    """``connection``, ``json``, ``quick-ack``, …: see :mod:`mcpace.report.words.factors`."""
    detail: str = ""
    """Which: a revision, an address, a size."""
    base_s: Number | None = None
    """A call's median time in the base case, in the slices that took turns with this factor's."""
    changed_s: Number | None = None
    ratio: Number | None = None
    """Changed over base, typical slice (Hodges–Lehmann)."""
    low: Number | None = None
    high: Number | None = None
    """Interval of the ratio, over slices."""
    confidence: Number = Field(default=0.95, ge=0, le=1)
    """The interval's."""
    slices: Whole = 0
    calls: Whole = 0
    """Of the changed case."""
    verdict: Literal["slower", "faster", "same", "unclear", "refused", "left-out"]
    """``refused``: the target doesn't take it so; ``reason`` says why. ``left-out``: there was no time for it."""
    reason: str = ""
    cause: str | None = None
    """Code of the finding that this effect is the proof of."""
    facts: Facts = {}
    """What else was seen: replies by kind, bytes, connections."""
