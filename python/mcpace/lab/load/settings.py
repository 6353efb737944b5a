"""Settings of a load, parsed from the command line and a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mcpace.lab.errors import UsageProblem
from mcpace.lab.load.plan import Operation
from mcpace.lab.load.thresholds import Threshold

if TYPE_CHECKING:
    from mcpace.lab.load.workers.places import WorkerPlace

DEFAULT_VUS = 10
DEFAULT_DURATION_S = 10.0
DEFAULT_WARM_UP_S = 1.0
DEFAULT_TIMEOUT_S = 30.0
MOST_VUS = 100_000

STATELESS_SINCE = "2026-07-28"

Session = Literal["user", "call", "none"]


def resolve_session(requested: Session | None, revision: str) -> Session:
    """Lifetime of a session: by default that of its user, and none in revisions without sessions.

    Raises :class:`UsageProblem` where a session is requested in a revision without sessions.
    """
    if revision < STATELESS_SINCE:
        return requested or "user"
    if requested in ("user", "call"):
        raise UsageProblem(
            f"--session {requested}: revision {revision} has no sessions; "
            "leave it out, or choose an earlier one with --revision"
        )
    return "none"


@dataclass(frozen=True)
class Ramp:
    """A linear ramp from the end of the previous stage to ``to`` users, or ``to`` calls a second."""

    duration_s: float
    to: float


@dataclass(frozen=True)
class LoadSettings:
    """One load on one target."""

    vus: int | None = None
    """Users of a closed load; ``None`` for an open one."""
    rate: float | None = None
    """Calls a second of an open load."""
    arrivals: Literal["constant", "poisson"] = "constant"
    max_in_flight: int = 1000
    duration_s: float = DEFAULT_DURATION_S
    """Duration without the warm-up. Unused where there are stages."""
    stages: tuple[Ramp, ...] = ()
    warm_up_s: float = DEFAULT_WARM_UP_S
    think_s: float = 0.0
    max_calls: int | None = None
    mix: tuple[tuple[str, float], ...] = ()
    """Tools and weights. Where empty, the check of the target selects a tool."""
    arguments: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    data: Mapping[str, list[str]] = field(default_factory=dict)
    """Values for templates ``{{choice:NAME}}``, by name."""
    replay: tuple[Operation, ...] = ()
    """A recording's requests in order, instead of a mix."""
    replay_file: str | None = None
    session: Session | None = None
    """``None``: one session for each user where the revision has sessions."""
    revision: str | None = None
    """``None``: the revision that the server negotiates."""
    accept: Literal["both", "json", "sse"] = "both"
    timeout_s: float = DEFAULT_TIMEOUT_S
    threads: int = 1
    cores: tuple[int, ...] = ()
    seed: int = 1
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    extra_root: Path | None = None
    thresholds: tuple[Threshold, ...] = ()
    server_timing: bool = False
    """Whether an additional user requests the server's layer timings."""
    inside: bool = False
    """Whether the program that mcpace starts is looked into, in a stretch of load after the measurement."""
    pid: int | None = None
    """Process that serves the target and is looked into in such a stretch."""
    workers: tuple[WorkerPlace, ...] = ()
    """Places of the workers that make the load together; empty where this process makes it."""
    hold_s: float = 0.0
    faults: tuple[str, ...] = ()

    def as_options(self) -> dict[str, Any]:
        """The Run's ``options``: the requested settings, with the names of headers but not their values."""
        options: dict[str, Any] = {
            "vus": self.vus,
            "rate": self.rate,
            "arrivals": self.arrivals if self.rate is not None else None,
            "max_in_flight": self.max_in_flight if self.rate is not None else None,
            "duration_s": None if self.stages else self.duration_s,
            "stages": [{"duration_s": stage.duration_s, "to": stage.to} for stage in self.stages],
            "warm_up_s": self.warm_up_s,
            "think_s": self.think_s,
            "max_calls": self.max_calls,
            "replay": self.replay_file,
            "accept": self.accept,
            "timeout_s": self.timeout_s,
            "threads": self.threads,
            "cores": list(self.cores),
            "seed": self.seed,
            "headers": [name for name, _ in self.headers],
            "server_timing": self.server_timing or None,
            "inside": self.inside or self.pid is not None or None,
            "faults": list(self.faults),
            "workers": [place.name for place in self.workers],
        }
        return {name: value for name, value in options.items() if value not in (None, [])}
