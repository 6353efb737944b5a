"""The parts of a Run that a load adds: throughput, latencies, errors by kind, a time series, the generator's own state.

Design constraint: data only. A failed call is counted and is never part of the latency of successful calls. ``latency``
starts when a call was due, ``service`` when the call was sent. Only ``latency`` shows a late target or generator.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from mcpace.report.model.base import Facts, Model, Number, Whole


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
    """One tool's calls, or one of the other requests (``initialize``, listings), after the warm-up."""

    name: str
    kind: str
    """``call``, ``list``, ``ping``, ``raw``, ``initialize``, …"""
    count: Whole
    """Ended, well or not."""
    ok: Whole
    errors: dict[str, Whole] = {}
    """By kind, those that were seen: ``timeout``, ``tool_error``, …"""
    first_error: str | None = None
    throughput_rps: Number
    """Good replies a second."""
    latency_s: Latencies | None = None
    service_s: Latencies | None = None
    failed_s: Latencies | None = None
    """Of the failed ones, from when they were due."""
    latency_buckets: list[tuple[Whole, Whole]] = []
    """Upper bound in nanoseconds, count: three significant digits, so that runs can be merged and compared."""
    sent_bytes: Whole = 0
    received_bytes: Whole = 0
    json_replies: Whole = 0
    sse_replies: Whole = 0


class LoadSecond(Model):
    """One second of the run."""

    at_s: Number
    """Its start, seconds since the load's."""
    warm_up: bool
    users: Whole
    intended: Whole
    """Calls that were due in it."""
    ok: Whole
    errors: Whole
    p50_s: Number | None = None
    p90_s: Number | None = None
    p99_s: Number | None = None
    max_s: Number | None = None
    engine_busy: Number = 0.0
    """Share of its threads' time that the generator worked."""


class LoadConnections(Model):
    """What became of the connections (over stdio: of the processes)."""

    opened: Whole = 0
    reused_requests: Whole = 0
    failed: Whole = 0
    closed_by_peer: Whole = 0


class LoadEngine(Model):
    """The generator itself."""

    threads: Whole
    cpu_s: Number
    busy: Number
    late_p99_s: Number
    """99 % of the calls left no later than this after they were due."""
    saturated: bool
    reason: str | None = None


class LoadThreshold(Model):
    """A limit that the user set, and what came."""

    text: str
    met: bool
    actual: Number | None = None
    """``None`` where nothing was measured that it could be held against: then it is not met."""
    limit: Number
    unit: Literal["s", "share", "count", "rps"]


class LoadFacts(Model):
    """How the load went as a whole."""

    ended: Literal["done", "stopped", "failed"]
    failure: str | None = None
    model: Facts
    """What was asked for: ``{"kind": "closed", "vus": 50}`` or ``{"kind": "open", "rate": 1000, …}``."""
    elapsed_s: Number
    """With warm-up and drain."""
    measured_s: Number
    """After the warm-up: what throughput is over."""
    warm_up_s: Number
    intended: Whole
    begun: Whole
    dropped: Whole
    """Calls that were due and never begun."""
    late: Whole
    """Calls that had to wait for a free slot."""
    unfinished: Whole
    """Calls that had no end when the run was over."""
    acknowledgement_share: Number = 0.0
    """Share of calls near 40 ms, beyond what lies beside them, over connections that are used again: where calls wait
    for a delayed TCP acknowledgement. 0 below a share worth an experiment."""
    others: dict[str, LoadOperation] = {}
    """What is no call: ``initialize``, listings, pings; counted apart."""
    beside: Whole | None = None
    """Calls of one user more, who asked the server for its layers: in the case's ledger and in no other figure."""
    connections: LoadConnections = LoadConnections()
    engine: LoadEngine
    thresholds: list[LoadThreshold] = []


class LoadCase(Model):
    """What a case of load has beside the members of every case; absent from the others' JSON."""

    throughput_rps: Number | None = None
    """Good replies to calls, a second."""
    errors: Whole | None = None
    """Failed calls."""
    latency_s: Latencies | None = None
    """Of all good calls, from when each was due."""
    service_s: Latencies | None = None
    """Of all good calls, from when each was sent."""
    by_tool: dict[str, LoadOperation] | None = None
    cpu_s: Number | None = None
    """Processor time of the server, where it runs on this machine and was looked at."""
    rss_bytes: Whole | None = None
    """Its largest memory."""
    saturated: bool | None = None
    """Whether the generator, not the target, was the limit."""
    seconds: list[LoadSecond] | None = None
    load: LoadFacts | None = None

    @model_serializer(mode="wrap")
    def _without_what_is_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = handler(self)
        if self.load is None and self.throughput_rps is None:
            for name in LoadCase.model_fields:
                members.pop(name, None)
        if members.get("server") is None:
            members.pop("server", None)
        if members.get("layer") is None:
            for name in ("layer", "median_s", "over_direct_s"):
                members.pop(name, None)
        return members
