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
    """What is in its time, in words."""
    batches: Whole = 0
    calls_per_batch: Whole = 0
    low_s: Number | None = None
    high_s: Number | None = None
    """Quartiles of the batches."""
    ratio: Number | None = None
    """Its median over the direct call's."""
    adds_s: Number | None = None
    """Its median less that of the next layer inside it that was measured."""
    share: Number | None = None
    """``adds_s`` of the outermost layer's median, for those inside it, which add up to all of it. The socket's is the
    outermost; where there is none, the one in process."""


class LayersFacts(Model):
    """What all layers had in common."""

    sdk: str
    version: str = ""
    python: str = ""
    """Version of the interpreter that ran the server."""
    served_by: str = ""
    """What served the socket."""
