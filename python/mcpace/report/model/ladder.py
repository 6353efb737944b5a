"""The part of a Run that locates the time of a live target's calls: requests that each reach one layer further.

Design constraint: data only.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Model, Number, Whole


class Rung(Model):
    """One kind of request, and the time that it takes."""

    code: str
    """``tcp``, ``tls``, ``http``, ``ping``, ``list``, ``unknown-tool`` or ``tool``."""
    samples_s: list[Number] = []
    """Seconds of each request, in order."""
    median_s: Number | None = None
    """``None`` where no request was answered."""
    answer: str = ""
    """The answer, where it isn't a result: an HTTP status, a JSON-RPC error."""
    failure: str = ""
    """Reason why there is no measurement."""


class Layer(Model):
    """The share of one layer in the time of a call over an open connection."""

    code: str
    """``network``, ``http``, ``sdk``, ``dispatch`` or ``tool``; over stdio, ``sdk`` includes the pipes."""
    seconds: Number


class Overlap(Model):
    """Two calls at once, with a ping while they run. Times are medians over the repeats."""

    sessions: Whole
    """Number of sessions that make the two calls."""
    repeats: Whole
    first_s: Number
    """From the start of both calls to the end of the earlier one."""
    both_s: Number
    """From the start of both calls to the end of the later one."""
    ping_s: Number
    order: Literal["parallel", "serial", "shared", "unclear"]
    """``shared``: both take twice as long as a call alone, and end together."""
    ping_waited: bool
    """Whether the ping waited for a call."""


class Ladder(Model):
    """Requests of increasing depth, the layers that follow from them, and the smallest test of concurrency."""

    rungs: list[Rung] = []
    layers: list[Layer] = []
    """They add up to the median of a call."""
    overlaps: list[Overlap] = []
    """Two calls in one session; where they don't run in parallel, also two calls in two sessions."""
    cause: str | None = None
    """Code of the finding that the overlaps prove."""
