"""The parts of a Run that a measurement of layers adds: the cost of each layer of one server.

Design constraint: data only. ``handler`` contains ``direct``. ``in-process`` and ``socket`` both contain ``handler``,
and each adds its own transport and client.
"""

from __future__ import annotations

from mcpace.report.model.base import Model, Number, Whole


class LayerFacts(Model):
    """One layer. Its case's ``trials_s`` are the batches' means, seconds a call, in order."""

    name: str
    """``direct``, ``handler``, ``in-process`` or ``socket``."""
    includes: str = ""
    """Description of the work that the layer's time includes."""
    batches: Whole = 0
    calls_per_batch: Whole = 0
    low_s: Number | None = None
    high_s: Number | None = None
    """Quartiles of the batches."""
    ratio: Number | None = None
    """Median of the layer divided by that of the direct call."""
    adds_s: Number | None = None
    """Median of the layer less that of the next measured layer inside it."""
    share: Number | None = None
    """``adds_s`` divided by the median of the outermost layer, for that layer and those inside it; the shares add up to
    1. The outermost layer is ``socket``, or ``in-process`` where the socket was not measured."""


class LayersFacts(Model):
    """Facts that all layers have in common."""

    sdk: str
    version: str = ""
    python: str = ""
    """Version of the interpreter that ran the server."""
    served_by: str = ""
    """The server program behind the socket."""
