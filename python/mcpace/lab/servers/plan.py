"""Plan of a comparison of servers, parsed from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcpace import _core
from mcpace.lab.errors import UsageProblem
from mcpace.lab.load.plan import Closed, Open
from mcpace.lab.load.settings import MOST_VUS, Session, resolve_session

if TYPE_CHECKING:
    from mcpace.lab.servers.server_program import State

WORKLOADS = ("echo", "shop", "shop-quick")
DEFAULT_VUS = 50
DEFAULT_DURATION_S = 10.0
DEFAULT_ROUNDS = 3
DEFAULT_WARM_UP_S = 2.0
DEFAULT_MEMORY = "2g"
REVISION = "2025-06-18"
"""Default revision of all servers, so that the comparison is fair. Nearly every release supports it."""
OLDER = "2025-03-26"
"""Revision for a release without a newer one, unless the user named a revision. The server's row reports it."""
REVISIONS = tuple(name for name in _core.REVISIONS if name != "2024-11-05")
"""Revisions with a single HTTP endpoint."""
SHORTEST_ROUND_S = 0.5
MAX_IN_FLIGHT = 1_000


@dataclass(frozen=True)
class ServersPlan:
    """The servers to compare, and the settings of the comparison."""

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
    """``None``: two, or one where there is only one."""
    memory: str = DEFAULT_MEMORY
    session: Session | None = None
    """``None``: one session for each user where the revision has sessions."""
    state: State = "stateless"
    revision: str | None = None
    """``None``: REVISION, or OLDER for a server that doesn't support REVISION."""
    server_timing: bool = False
    """Whether an additional user requests the servers' layer timings."""
    inside: bool = False
    """Whether each server is looked into, in a further load after its rounds."""

    def check_settings(self) -> None:
        """Raises :class:`UsageProblem` for settings that are invalid on any machine."""
        self.load_model()
        self.round_s()
        resolve_session(self.session, self.revision or REVISION)

    def tried_revisions(self) -> tuple[str, ...]:
        """Revisions to try with each server, in order."""
        return (self.revision,) if self.revision else (REVISION, OLDER)

    def load_model(self) -> Closed | Open:
        """Model of the load: users, or a rate.

        Raises :class:`UsageProblem` where both are given, and for an invalid number of users.
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

        Raises :class:`UsageProblem` where a round is too short for a measurement.
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
        """The Run's ``options``: the requested settings."""
        options = {
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
            "inside": self.inside or None,
        }
        return {name: value for name, value in options.items() if value is not None}
