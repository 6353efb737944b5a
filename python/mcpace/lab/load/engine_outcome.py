"""Outcome of a load, as the load engine writes it in JSON.

Design constraint: The members equal those of ``outcome.rs`` in ``crates/load``. This module isn't needed before a load
begins.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class Histogram(BaseModel):
    """A distribution of times. Without samples its other values are meaningless."""

    count: int = 0
    mean_s: float = 0.0
    min_s: float = 0.0
    p50_s: float = 0.0
    p90_s: float = 0.0
    p99_s: float = 0.0
    p999_s: float = 0.0
    max_s: float = 0.0
    buckets: list[tuple[int, int]] = []


class OperationOutcome(BaseModel):
    """Results of one operation."""

    name: str
    kind: str
    count: int
    ok: int
    errors: dict[str, int]
    first_error: str | None = None
    latency: Histogram
    service: Histogram
    failed: Histogram = Histogram()
    sent_bytes: int = 0
    received_bytes: int = 0
    json_replies: int = 0
    sse_replies: int = 0


class Connections(BaseModel):
    """Connections, or processes over stdio."""

    opened: int = 0
    reused_requests: int = 0
    failed: int = 0
    closed_by_peer: int = 0


class SecondLatency(BaseModel):
    """Latencies of one second's successful replies."""

    p50_s: float
    p90_s: float
    p99_s: float
    max_s: float


class Second(BaseModel):
    """Results of one whole second."""

    at_s: float
    warm_up: bool = False
    users: int = 0
    intended: int = 0
    ok: int = 0
    errors: int = 0
    latency: SecondLatency | None = None
    engine_busy: float = 0.0


class Engine(BaseModel):
    """Resource use of the load generator itself."""

    threads: int
    cpu_s: float
    busy: float
    late_p99_s: float
    saturated: bool
    reason: str | None = None


class Outcome(BaseModel):
    """Results of one load."""

    ended: Literal["done", "stopped", "failed"]
    failure: str | None = None
    started_ns: int
    elapsed_s: float
    measured_s: float
    intended: int
    begun: int
    dropped: int
    late: int
    unfinished: int
    operations: list[OperationOutcome]
    connections: Connections
    seconds: list[Second]
    engine: Engine
