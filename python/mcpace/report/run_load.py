"""The parts of a Run that load adds: throughput, latencies, errors by kind, a time series, the generator's own state.

Design constraint: data only, as in :mod:`mcpace.report.run`. A failed call is counted and never part of a good call's
latency. ``latency`` runs from when a call was due, ``service`` from when it was sent: where the target or the generator
is late, only the first one shows it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from mcpace.report.model import Model


class Latencies(Model):
    """A distribution of times, seconds."""

    count: int
    mean: float
    min: float
    p50: float
    p90: float
    p99: float
    p999: float
    max: float


class LoadOperation(Model):
    """One tool's calls, or one of the other requests (``initialize``, listings), after the warm-up."""

    name: str
    kind: str
    """``call``, ``list``, ``ping``, ``raw``, ``initialize``, …"""
    count: int
    """Ended, well or not."""
    ok: int
    errors: dict[str, int] = {}
    """By kind, those that were seen: ``timeout``, ``tool_error``, …"""
    first_error: str | None = None
    throughput_rps: float
    """Good replies a second."""
    latency_s: Latencies | None = None
    service_s: Latencies | None = None
    failed_s: Latencies | None = None
    """Of the failed ones, from when they were due."""
    latency_buckets: list[tuple[int, int]] = []
    """Upper bound in nanoseconds, count: three significant digits, so that runs can be merged and compared."""
    sent_bytes: int = 0
    received_bytes: int = 0
    json_replies: int = 0
    sse_replies: int = 0


class LoadSecond(Model):
    """One second of the run."""

    at_s: float
    """Its start, seconds since the load's."""
    warm_up: bool
    users: int
    intended: int
    """Calls that were due in it."""
    ok: int
    errors: int
    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    max_s: float | None = None
    engine_busy: float = 0.0
    """Share of its threads' time that the generator worked."""


class LoadConnections(Model):
    """What became of the connections (over stdio: of the processes)."""

    opened: int = 0
    reused_requests: int = 0
    failed: int = 0
    closed_by_peer: int = 0


class LoadEngine(Model):
    """The generator itself."""

    threads: int
    cpu_s: float
    busy: float
    late_p99_s: float
    """99 % of the calls left no later than this after they were due."""
    saturated: bool
    reason: str | None = None


class LoadThreshold(Model):
    """A limit that the user set, and what came."""

    text: str
    met: bool
    actual: float | None = None
    """``None`` where nothing was measured that it could be held against: then it is not met."""
    limit: float
    unit: Literal["s", "share", "count", "rps"]


class LoadFacts(Model):
    """How the load went as a whole."""

    ended: Literal["done", "stopped", "failed"]
    failure: str | None = None
    model: dict[str, Any]
    """What was asked for: ``{"kind": "closed", "vus": 50}`` or ``{"kind": "open", "rate": 1000, …}``."""
    elapsed_s: float
    """With warm-up and drain."""
    measured_s: float
    """After the warm-up: what throughput is over."""
    warm_up_s: float
    intended: int
    begun: int
    dropped: int
    """Calls that were due and never begun."""
    late: int
    """Calls that had to wait for a free slot."""
    unfinished: int
    """Calls that had no end when the run was over."""
    others: dict[str, LoadOperation] = {}
    """What is no call: ``initialize``, listings, pings; counted apart."""
    beside: int | None = None
    """Calls of one user more, who asked the server for its layers: in the case's ledger and in no other figure."""
    connections: LoadConnections = LoadConnections()
    engine: LoadEngine
    thresholds: list[LoadThreshold] = []


class LoadCase(Model):
    """What a case of load has beside the members of every case; absent from the others' JSON."""

    throughput_rps: float | None = None
    """Good replies to calls, a second."""
    errors: int | None = None
    """Failed calls."""
    latency_s: Latencies | None = None
    """Of all good calls, from when each was due."""
    service_s: Latencies | None = None
    """Of all good calls, from when each was sent."""
    by_tool: dict[str, LoadOperation] | None = None
    cpu_s: float | None = None
    """Processor time of the server, where it runs on this machine and was looked at."""
    rss_bytes: int | None = None
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
