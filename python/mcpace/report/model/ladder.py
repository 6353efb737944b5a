"""The part of a Run that locates the time of a live target's calls: requests that each reach one layer further.

Design constraint: data only.
"""

from __future__ import annotations

from mcpace.report.model.base import Model, Number


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


class Ladder(Model):
    """Requests of increasing depth, and the layers that follow from them."""

    rungs: list[Rung] = []
    layers: list[Layer] = []
    """They add up to the median of a call."""
