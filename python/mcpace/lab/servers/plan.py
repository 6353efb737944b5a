"""What a comparison of servers is to be, resolved: made once from the command line's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcpace import _core
from mcpace.lab.errors import UsageProblem
from mcpace.lab.load.plan import Closed, Open
from mcpace.lab.load.settings import MOST_VUS, Session, settled_session
from mcpace.lab.servers.server_program import State

DEFAULT_VUS = 50
DEFAULT_DURATION_S = 10.0
DEFAULT_ROUNDS = 3
DEFAULT_WARM_UP_S = 2.0
DEFAULT_MEMORY = "2g"
REVISION = "2025-06-18"
"""Pinned on both sides unless said otherwise: a fair comparison speaks one language. Nearly every release has it."""
OLDER = "2025-03-26"
"""For a release that has no newer one, unless a revision was asked for; its row says so."""
REVISIONS = tuple(name for name in _core.REVISIONS if name != "2024-11-05")
"""Those that have one endpoint for everything."""
SHORTEST_ROUND_S = 0.5
MAX_IN_FLIGHT = 1_000


@dataclass(frozen=True)
class ServersPlan:
    """What servers are to be compared, and how."""

    subjects: tuple[str, ...]
    """As users type them: ``rmcp@3.9.0:json``."""
    workload: str = "echo"
    vus: int | None = None
    rate: float | None = None
    """Calls a second, instead of users."""
    duration_s: float = DEFAULT_DURATION_S
    """Measured seconds of each server, over all its rounds."""
    rounds: int = DEFAULT_ROUNDS
    warm_up_s: float = DEFAULT_WARM_UP_S
    cpus: float | None = None
    """``None``: two, or as many as there are."""
    memory: str = DEFAULT_MEMORY
    session: Session | None = None
    """``None``: a session a user where the revision has sessions."""
    state: State = "stateless"
    revision: str | None = None
    """``None``: REVISION, or with a server that doesn't speak that, OLDER."""
    server_timing: bool = False
    """Whether one user more asks the servers for their layers."""

    def check(self) -> None:
        """Raises :class:`UsageProblem` for what needs no look at the machine or an index to be refused."""
        self.model()
        self.round_s()
        settled_session(self.session, self.revision or REVISION)

    def revisions(self) -> tuple[str, ...]:
        """What is tried with each server, in this order."""
        return (self.revision,) if self.revision else (REVISION, OLDER)

    def model(self) -> Closed | Open:
        """Users, or a rate.

        Raises :class:`UsageProblem` for both, and for what no load can be.
        """
        if self.rate is not None:
            if self.vus is not None:
                raise UsageProblem("--vus and --rate are two kinds of load: give one")
            return Open(rate=self.rate, max_in_flight=MAX_IN_FLIGHT)
        vus = DEFAULT_VUS if self.vus is None else self.vus
        if not 1 <= vus <= MOST_VUS:
            raise UsageProblem(f"--vus takes 1 to {MOST_VUS:,}, not {vus:,}")
        return Closed(vus=vus)

    def round_s(self) -> float:
        """Measured seconds of one round.

        Raises :class:`UsageProblem` where that is too short to tell anything.
        """
        each = self.duration_s / self.rounds
        if each < SHORTEST_ROUND_S:
            least = SHORTEST_ROUND_S * self.rounds
            raise UsageProblem(
                f"--duration {self.duration_s:g}s makes {self.rounds} rounds of {each:.2g} s, too short to tell "
                f"anything: {least:g}s is the least"
            )
        return each

    def as_options(self) -> dict[str, Any]:
        """For the Run's ``options``: what was asked for."""
        told = {
            "subjects": list(self.subjects),
            "workload": self.workload,
            "vus": DEFAULT_VUS if self.vus is None and self.rate is None else self.vus,
            "rate": self.rate,
            "duration_s": self.duration_s,
            "rounds": self.rounds,
            "warm_up_s": self.warm_up_s,
            "cpus": self.cpus,
            "memory": self.memory,
            "session": self.session,
            "state": self.state,
            "revision": self.revision,
            "server_timing": self.server_timing or None,
        }
        return {name: value for name, value in told.items() if value is not None}
