"""Outcome of a load, as the load engine writes it in JSON.

Design constraint: The members equal those of ``outcome.rs`` in ``crates/load``. Numbers are checked, since a worker
of a load may run on another machine. This module isn't needed before a load begins.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

Count = Annotated[int, Field(ge=0, lt=2**63)]
Real = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Histogram(BaseModel):
    """A distribution of times. Without samples its other values are meaningless."""

    count: Count = 0
    mean_s: Real = 0.0
    min_s: Real = 0.0
    p50_s: Real = 0.0
    p90_s: Real = 0.0
    p99_s: Real = 0.0
    p999_s: Real = 0.0
    max_s: Real = 0.0
    buckets: list[tuple[Count, Count]] = []


class OperationOutcome(BaseModel):
    """Results of one operation."""

    name: str
    kind: str
    count: Count
    ok: Count
    errors: dict[str, Count]
    first_error: str | None = None
    latency: Histogram
    service: Histogram
    failed: Histogram = Histogram()
    sent_bytes: Count = 0
    received_bytes: Count = 0
    json_replies: Count = 0
    sse_replies: Count = 0


class Connections(BaseModel):
    """Connections, or processes over stdio."""

    opened: Count = 0
    reused_requests: Count = 0
    failed: Count = 0
    closed_by_peer: Count = 0


class SecondLatency(BaseModel):
    """Latencies of one second's successful replies."""

    p50_s: Real
    p90_s: Real
    p99_s: Real
    max_s: Real


class Second(BaseModel):
    """Results of one whole second."""

    at_s: Real
    warm_up: bool = False
    users: Count = 0
    intended: Count = 0
    ok: Count = 0
    errors: Count = 0
    latency: SecondLatency | None = None
    engine_busy: Real = 0.0


class Engine(BaseModel):
    """Resource use of the load generator itself."""

    threads: Count
    cpu_s: Real
    busy: Real
    late_p99_s: Real
    saturated: bool
    reason: str | None = None


class Outcome(BaseModel):
    """Results of one load."""

    ended: Literal["done", "stopped", "failed"]
    failure: str | None = None
    started_ns: Count
    elapsed_s: Real
    measured_s: Real
    intended: Count
    begun: Count
    dropped: Count
    late: Count
    unfinished: Count
    operations: list[OperationOutcome]
    connections: Connections
    seconds: list[Second]
    engine: Engine
