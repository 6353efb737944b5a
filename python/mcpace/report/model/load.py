"""The parts of a Run that a load adds: throughput, latencies, errors by kind, a time series, the generator's own state.

Design constraint: data only. A failed call is counted and is never part of the latency of successful calls. ``latency``
starts when a call was due, ``service`` when the call was sent. Only ``latency`` shows a late target or generator.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from mcpace.report.model.base import Facts, Model, Number, Whole
from mcpace.report.model.inside import InsideSums


class Latencies(Model):
    """A distribution of times, seconds."""

    count: Whole
    mean: Number
    min: Number
    p50: Number
    p90: Number
    p99: Number
    p999: Number
    max: Number


class LoadOperation(Model):
    """Calls of one tool, or other requests of one kind (``initialize``, listings), after the warm-up."""

    name: str
    kind: str
    """``call``, ``list``, ``ping``, ``raw``, ``initialize``, …"""
    count: Whole
    """Number of finished requests, successful or not."""
    ok: Whole
    errors: dict[str, Whole] = {}
    """Number of errors by kind: ``timeout``, ``tool_error``, …"""
    first_error: str | None = None
    throughput_rps: Number
    """Successful replies a second."""
    latency_s: Latencies | None = None
    service_s: Latencies | None = None
    failed_s: Latencies | None = None
    """Times of the failed requests, from when each was due."""
    latency_buckets: list[tuple[Whole, Whole]] = []
    """Upper bound in nanoseconds, and count. Bounds have three significant digits, so that runs can be merged and
    compared."""
    sent_bytes: Whole = 0
    received_bytes: Whole = 0
    json_replies: Whole = 0
    sse_replies: Whole = 0
    result_tokens: Whole | None = None
    """Tokens of the tool's result in the check before the load; ``None`` where it was not counted, as in a replay."""


class LoadSecond(Model):
    """One second of the run."""

    at_s: Number
    """Its start, in seconds since the start of the load."""
    warm_up: bool
    users: Whole
    intended: Whole
    """Number of calls that were due in this second."""
    ok: Whole
    errors: Whole
    p50_s: Number | None = None
    p90_s: Number | None = None
    p99_s: Number | None = None
    max_s: Number | None = None
    engine_busy: Number = 0.0
    """Share of its threads' time in which the generator was working."""


class LoadConnections(Model):
    """Counts of connections; over stdio, of processes."""

    opened: Whole = 0
    reused_requests: Whole = 0
    failed: Whole = 0
    closed_by_peer: Whole = 0


class LoadEngine(Model):
    """State of the load generator."""

    threads: Whole
    cpu_s: Number
    busy: Number
    late_p99_s: Number
    """99th percentile of the delay between the time when a call was due and the time when it was sent."""
    saturated: bool
    reason: str | None = None


class LoadThreshold(Model):
    """A limit that the user set, and the measured value."""

    text: str
    met: bool
    actual: Number | None = None
    """``None`` where the value was not measured; the limit is not met then."""
    limit: Number
    unit: Literal["s", "share", "count", "rps"]


class LoadWorker(Model):
    """One of several processes or machines that made the load together."""

    place: str
    """``local 1``, ``ssh user@host`` …"""
    state: Literal["done", "refused", "lost"]
    """``refused``: it made no part of the load. ``lost``: it ended or was silent before the end of its part."""
    reason: str | None = None
    """Why it is not ``done``."""
    threads: Whole
    share: Number
    """Its share of the load."""
    missing_share: Number = 0.0
    """Share of the whole load that this worker did not make, or whose counts did not arrive."""
    counted_s: Number | None = None
    """Where it was lost: seconds of the load whose counts arrived. Calls that ended later are in no figure."""
    time_offset_s: Number | None = None
    """Its time of day minus that of this machine."""
    uncertainty_s: Number | None = None
    """Largest error of ``time_offset_s`` and of ``start_skew_s``."""
    start_skew_s: Number | None = None
    """Its start after the agreed instant."""
    intended: Whole = 0
    calls: Whole = 0
    """Requests that ended, counted as the operations of the load are."""
    errors: Whole = 0
    never_started: Whole = 0
    """Calls that were due and that it did not begin."""
    report_late_s: Number = 0.0
    """Longest time from the end of a second to the arrival of its counts."""
    busy: Number = 0.0
    """Busy share of its busiest thread."""
    saturated: bool = False


class LoadFacts(Model):
    """Facts of the load as a whole."""

    ended: Literal["done", "stopped", "failed"]
    failure: str | None = None
    model: Facts
    """The requested load: ``{"kind": "closed", "vus": 50}`` or ``{"kind": "open", "rate": 1000, …}``."""
    elapsed_s: Number
    """Total time, including warm-up and drain."""
    measured_s: Number
    """Time after the warm-up, by which throughput is computed."""
    warm_up_s: Number
    intended: Whole
    begun: Whole
    dropped: Whole
    """Calls that were due and never started."""
    late: Whole
    """Calls that had to wait for a free slot."""
    unfinished: Whole
    """Calls that had not finished when the run ended."""
    acknowledgement_share: Number = 0.0
    """Share of calls on reused connections that take about 40 ms, in excess of the share at neighbouring times. Such
    calls may wait for a delayed TCP acknowledgement. 0 where the share is too small to justify an experiment."""
    others: dict[str, LoadOperation] = {}
    """Requests other than calls, counted separately: ``initialize``, listings, pings."""
    beside: Whole | None = None
    """Calls of one additional user, who asked the server for the times of its layers. They are in the case's ledger and
    in no other figure."""
    connections: LoadConnections = LoadConnections()
    engine: LoadEngine
    thresholds: list[LoadThreshold] = []
    workers: list[LoadWorker] = []
    """The workers, where several processes or machines made the load. All figures are those of all workers together."""


class LoadCase(Model):
    """Additional members of a load's case; absent from the JSON of other cases."""

    throughput_rps: Number | None = None
    """Successful replies to calls, a second."""
    errors: Whole | None = None
    """Number of failed calls."""
    latency_s: Latencies | None = None
    """Times of all successful calls, from when each was due."""
    service_s: Latencies | None = None
    """Times of all successful calls, from when each was sent."""
    by_tool: dict[str, LoadOperation] | None = None
    cpu_s: Number | None = None
    """Processor time of the server, where it runs on this machine and was observed."""
    rss_bytes: Whole | None = None
    """Largest memory of the server."""
    saturated: bool | None = None
    """Whether the generator, not the target, was the limit."""
    seconds: list[LoadSecond] | None = None
    load: LoadFacts | None = None
    inside_sums: InsideSums | None = None
    """Work of the server's programs in a further stretch of the load, where they were looked into. All other figures
    were measured without that."""

    @model_serializer(mode="wrap")
    def _without_what_is_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = handler(self)
        if self.load is None and self.throughput_rps is None:
            for name in LoadCase.model_fields:
                members.pop(name, None)
        names = (
            "inside_sums",
            "server",
            "listing",
            "tools",
            "context_tokens",
            "result_tokens",
            "result_kinds",
            "start",
        )
        for name in names:
            if members.get(name) is None:
                members.pop(name, None)
        if members.get("layer") is None:
            for name in ("layer", "median_s", "over_direct_s"):
                members.pop(name, None)
        return members
