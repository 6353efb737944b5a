"""The part of a Run that a saved recording adds: what there was to explain.

Design constraint: data only, as in :mod:`mcpace.report.run`.
"""

from __future__ import annotations

from mcpace.report.model import Model, Whole


class RecordingFacts(Model):
    """One recording, or several that were taken as one."""

    events: Whole
    lost: Whole = 0
    """Events that the recorder couldn't keep."""
    cut_off: bool = False
    """Its end is missing."""
