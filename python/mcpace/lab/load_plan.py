"""What goes into the load engine and what comes out of it, as JSON: the other half is ``crates/load``.

Design constraint: the same members as there, and nothing else. Words for people, the choice of a tool, thresholds are
not the engine's.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

# --- the plan ---


class HttpTarget(BaseModel):
    """A server behind a URL."""

    kind: Literal["http"] = "http"
    url: str
    headers: list[tuple[str, str]] = []
    ca: str | None = None
    """PEM certificates to trust beside the system's."""
    insecure: bool = False


class StdioTarget(BaseModel):
    """A command: one process a user."""

    kind: Literal["stdio"] = "stdio"
    command: list[str]
    env: dict[str, str] = {}
    cwd: str | None = None


class Closed(BaseModel):
    """Users who wait for their reply before they call again."""

    kind: Literal["closed"] = "closed"
    vus: int


class Open(BaseModel):
    """Arrivals on a schedule that the target can't slow down."""

    kind: Literal["open"] = "open"
    rate: float
    arrivals: Literal["constant", "poisson"] = "constant"
    max_in_flight: int = 1000


class Stage(BaseModel):
    """A ramp to so many users, or calls a second."""

    duration_s: float
    to: float


class Operation(BaseModel):
    """A request that the load is made of. Strings in ``arguments`` and ``params`` may hold templates."""

    name: str
    kind: Literal["call", "list", "ping", "raw"]
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    method: str | None = None
    params: dict[str, Any] | None = None
    weight: float = 1.0


class Plan(BaseModel):
    """One load."""

    target: HttpTarget | StdioTarget
    revision: str
    accept: Literal["both", "json", "sse"] = "both"
    session: Literal["user", "call", "none"] = "user"
    model: Closed | Open
    stages: list[Stage] = []
    duration_s: float | None
    warm_up_s: float
    think_s: float = 0.0
    max_calls: int | None = None
    operations: list[Operation]
    order: Literal["sequence"] | None = None
    """``sequence``: each user makes the operations one after the other, again and again; else by weight, by chance."""
    data: dict[str, list[str]] = {}
    timeout_s: float
    drain_s: float = 5.0
    threads: int = 1
    cores: list[int] | None = None
    seed: int = 1

    def to_json(self) -> str:
        """As the engine reads it; without what is not said."""
        return self.model_dump_json(exclude_none=True)


# --- the outcome ---


class Histogram(BaseModel):
    """A distribution; without samples its figures mean nothing."""

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
    """What came of one operation."""

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
    """Of one second's good replies."""

    p50_s: float
    p90_s: float
    p99_s: float
    max_s: float


class Second(BaseModel):
    """One whole second."""

    at_s: float
    warm_up: bool = False
    users: int = 0
    intended: int = 0
    ok: int = 0
    errors: int = 0
    latency: SecondLatency | None = None
    engine_busy: float = 0.0


class Engine(BaseModel):
    """The generator itself."""

    threads: int
    cpu_s: float
    busy: float
    late_p99_s: float
    saturated: bool
    reason: str | None = None


class Outcome(BaseModel):
    """What came of the load."""

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
