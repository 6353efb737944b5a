"""Plan of a load, as the load engine reads it in JSON.

Design constraint: The members equal those of ``plan.rs`` in ``crates/load``. Texts for users, the choice of a tool and
thresholds are not part of the plan. The types are plain dataclasses, since modules needed before the first request must
import quickly.
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
    """A server command, started once for each user."""

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
    """A linear ramp to ``to`` users, or ``to`` calls a second."""

    duration_s: float
    to: float


@dataclass(frozen=True)
class Operation:
    """One kind of request of the load. Strings in ``arguments`` and ``params`` may contain templates."""

    name: str
    kind: Literal["call", "list", "ping", "raw"]
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    method: str | None = None
    params: dict[str, Any] | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class LoadPlan:
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
    """``sequence``: each user repeats the operations in order; ``None``: operations are chosen randomly by weight."""
    data: dict[str, list[str]] = field(default_factory=dict)
    drain_s: float = 5.0
    threads: int = 1
    cores: list[int] | None = None
    seed: int = 1
    quick_ack: bool = False
    """Whether client sockets set TCP_QUICKACK, which removes stalls of delayed acknowledgements."""
    new_connections: bool = False
    """Whether each request opens a new connection, to measure the effect of reusing connections."""

    def to_json(self) -> str:
        """The engine's JSON, without members that are ``None``."""
        return json.dumps(_set_members(self), default=_set_members, ensure_ascii=False, allow_nan=False)


def _set_members(part: object) -> dict[str, Any]:
    return {name: value for name, value in vars(part).items() if value is not None}
