"""The part of a Run that experiments on a live target add: the effect of one factor at a time, with an interval.

Design constraint: data only.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mcpace.report.model.base import Facts, Model, Number, Whole


class Factor(Model):
    """One changed condition, and the time of a call under it."""

    code: str
    """``connection``, ``json``, ``quick-ack``, …: see :mod:`mcpace.report.words.factors`."""
    detail: str = ""
    """Value of the factor: a revision, an address, a size."""
    base_s: Number | None = None
    """Median time of a call in the base case, in the slices that took turns with those of this factor."""
    changed_s: Number | None = None
    ratio: Number | None = None
    """Changed over base: geometric mean of the rounds' ratios. Older runs have a median by ranks."""
    low: Number | None = None
    high: Number | None = None
    """Interval of the ratio, over rounds; valid although the rounds end as soon as the answer is clear."""
    confidence: Number = Field(default=0.95, ge=0, le=1)
    """Confidence of the interval."""
    slices: Whole = 0
    calls: Whole = 0
    """Number of calls in the changed case."""
    verdict: Literal["slower", "faster", "same", "unclear", "refused", "left-out"]
    """``refused``: the target doesn't support the changed condition; ``reason`` says why. ``left-out``: there was no
    time for the experiment."""
    reason: str = ""
    cause: str | None = None
    """Code of the finding that this effect proves."""
    facts: Facts = {}
    """Other observations: replies by kind, bytes, connections."""
