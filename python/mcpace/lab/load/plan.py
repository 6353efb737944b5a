"""What the load engine is told to do, as JSON: the other half is ``crates/load``'s ``plan.rs``.

Design constraint: the same members as there, and nothing else. Words for people, the choice of a tool, thresholds are
not the engine's. Plain dataclasses: what is needed before the first request must load quickly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class HttpTarget:
    """A server behind a URL."""

    url: str
    headers: list[tuple[str, str]] = field(default_factory=list, repr=False)
    ca: str | None = None
    """PEM certificates to trust beside the system's."""
    insecure: bool = False
    kind: Literal["http"] = "http"


@dataclass(frozen=True)
class StdioTarget:
    """A command: one process a user."""

    command: list[str]
    env: dict[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    kind: Literal["stdio"] = "stdio"


@dataclass(frozen=True)
class Closed:
    """Users who wait for their reply before they call again."""

    vus: int
    kind: Literal["closed"] = "closed"


@dataclass(frozen=True)
class Open:
    """Arrivals on a schedule that the target can't slow down."""

    rate: float
    """Calls a second."""
    arrivals: Literal["constant", "poisson"] = "constant"
    max_in_flight: int = 1000
    kind: Literal["open"] = "open"


@dataclass(frozen=True)
class Stage:
    """A ramp to so many users, or calls a second."""

    duration_s: float
    to: float


@dataclass(frozen=True)
class Operation:
    """A request that the load is made of. Strings in ``arguments`` and ``params`` may hold templates."""

    name: str
    kind: Literal["call", "list", "ping", "raw"]
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    method: str | None = None
    params: dict[str, Any] | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Plan:
    """One load."""

    target: HttpTarget | StdioTarget
    revision: str
    model: Closed | Open
    duration_s: float | None
    warm_up_s: float
    operations: list[Operation]
    timeout_s: float
    accept: Literal["both", "json", "sse"] = "both"
    session: Literal["user", "call", "none"] = "user"
    stages: list[Stage] = field(default_factory=list)
    think_s: float = 0.0
    max_calls: int | None = None
    order: Literal["sequence"] | None = None
    """``sequence``: each user makes the operations one after the other, again and again; else by weight, by chance."""
    data: dict[str, list[str]] = field(default_factory=dict)
    drain_s: float = 5.0
    threads: int = 1
    cores: list[int] | None = None
    seed: int = 1
    quick_ack: bool = False
    """TCP_QUICKACK on our sockets: the experiment under which a delayed acknowledgement vanishes."""
    new_connections: bool = False
    """A connection of its own for each request: what reusing them saves, or costs."""

    def to_json(self) -> str:
        """As the engine reads it; without what is not said."""
        return json.dumps(_said(self), default=_said, ensure_ascii=False, allow_nan=False)


def _said(part: object) -> dict[str, Any]:
    return {name: value for name, value in vars(part).items() if value is not None}
