"""The part of a Run that a saved recording adds: a summary of the recorded exchanges.

Design constraint: data only.
"""

from __future__ import annotations

from mcpace.report.model.base import Model, Number, Whole


class MethodFacts(Model):
    """The requests of one method, and of ``tools/call`` for one tool."""

    method: str
    name: str | None = None
    """The tool; of other methods the name or URI, where they have one."""
    requests: Whole
    succeeded: Whole
    failed: Whole
    """Answered with an error, or with a tool's own failure. Requests that are neither have no answer."""
    median_s: Number | None = None
    """From a request's first byte to its answer's last, over the answered ones."""
    slowest_s: Number | None = None
    request_bytes: Whole
    reply_bytes: Whole
    """Bytes of all replies."""
    largest_reply_bytes: Whole


class RecordingFacts(Model):
    """One recording, or several that were taken as one."""

    events: Whole
    lost: Whole = 0
    """Events that the recorder couldn't keep."""
    cut_off: bool = False
    """Its end is missing."""
    methods: list[MethodFacts] = []
    """The client's requests by method, in the order in which methods first occur."""
    starts_s: list[Number] = []
    """From the start of each server process to its first answer."""
