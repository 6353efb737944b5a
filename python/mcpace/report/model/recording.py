"""The part of a Run that a saved recording adds: a summary of the recorded exchanges.

Design constraint: data only.
"""

from __future__ import annotations

from mcpace.report.model.base import Model, Number, Whole
from mcpace.report.model.tokens import ResultTokens


class MethodFacts(Model):
    """The requests of one method, and of ``tools/call`` for one tool."""

    method: str
    name: str | None = None
    """Name of the tool; for other methods the name or URI, where they have one."""
    requests: Whole
    succeeded: Whole
    failed: Whole
    """Requests whose answer is an error or a tool's failure. Requests that neither succeeded nor failed have no
    answer."""
    median_s: Number | None = None
    """Median time of the answered requests, from a request's first byte to the last byte of its answer."""
    slowest_s: Number | None = None
    processor_s: Number | None = None
    """Median processor time that the server's process spent on a request, where the process was watched and served
    nothing else."""
    request_bytes: Whole
    reply_bytes: Whole
    """Bytes of all replies."""
    largest_reply_bytes: Whole
    result_tokens: ResultTokens | None = None
    """Tokens and bytes of the tool's results, where they were counted."""


class ExitFacts(Model):
    """The end of one server process."""

    code: int | None = None
    signal: int | None = None
    answered: Whole
    unanswered: Whole
    """Requests without an answer, without those that the client cancelled."""
    only_call_s: Number | None = None
    """Time of the tool call, where the process was started for one call and ended after it."""


class SerialCallFacts(Model):
    """Tool calls that followed one another at once, after a pause of the client."""

    calls: Whole
    time_s: Number
    at_once_s: Number
    """Time that they would have taken with the calls of each turn at once."""


class SpanClock(Model):
    """The clock of a program whose spans come from a file."""

    service: str
    """Name of the program; empty where it has none."""
    shift_s: float
    """Seconds that were added to its times, so that they fit the recorded calls."""
    error_s: Number | None = None
    """Limit of the error of its times against the recording; ``None`` where the calls set no limit."""
    is_contradictory: bool = False
    """Whether no single shift fits all calls: the clock drifts, or was set."""


class SpanFacts(Model):
    """The spans of a file, and how they were joined to calls."""

    spans: Whole
    requests: Whole
    """Requests that programs made: spans of kind client."""
    traced: Whole = 0
    """Requests whose trace leads to a call."""
    timed: Whole = 0
    """Requests that were joined to a call by their time."""
    remote: Whole = 0
    """Requests of other programs, which the calls waited for."""
    duplicates: Whole = 0
    misplaced: Whole = 0
    """Spans that begin outside the span that began them."""
    unended: Whole = 0
    """Spans without an end."""
    impossible: Whole = 0
    """Spans that end before they begin."""
    left_out: Whole = 0
    """Spans for which there was no room."""
    cut_off: bool = False
    """Whether the file ends within a span."""
    clocks: list[SpanClock] = []


class RecordingFacts(Model):
    """Summary of one recording, or of several that are read as one."""

    events: Whole
    lost: Whole = 0
    """Number of events that the recorder couldn't keep."""
    cut_off: bool = False
    """Whether the end of the recording is missing."""
    methods: list[MethodFacts] = []
    """The client's requests by method, in the order in which methods first occur."""
    starts_s: list[Number] = []
    """Time from the start of each server process to its first answer."""
    exits: list[ExitFacts] = []
    """The ends of the server processes."""
    spans: SpanFacts | None = None
    """The spans of a file that were read with the recording, or in the place of one."""
    traces_only: bool = False
    """Whether no traffic was recorded: spans alone tell of the calls."""
    serial_calls: SerialCallFacts | None = None
    """Tool calls that a foreign client made one after another within one turn."""
