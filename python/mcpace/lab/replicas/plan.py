"""Plan of a test of replicas: the command, the policies, the revisions, the tools, and the load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcpace.lab.defaults import PORT_VARIABLE
from mcpace.lab.errors import UsageProblem
from mcpace.lab.targets import Tool

if TYPE_CHECKING:
    from mcpace.report.model.replicas import Policy

POLICIES: tuple[Policy, ...] = ("round-robin", "least-connections", "session", "cookie")
REVISIONS = ("2025-11-25", "2026-07-28")
"""The newest revision with sessions, and the newest without."""
FEWEST, MOST = 2, 16
DEFAULT_VUS = 4
DEFAULT_DURATION_S = 6.0


@dataclass(frozen=True)
class ReplicasPlan:
    """The copies that are started, and the requests that are tried."""

    command: tuple[str, ...]
    copies: int
    policies: Sequence[Policy] = POLICIES
    revisions: Sequence[str] = REVISIONS
    tool: Tool | None = None
    """The tool of calls; the first that is marked read-only and needs no arguments where absent."""
    question: Tool | None = None
    """A tool that asks the client by elicitation."""
    long: Tool | None = None
    """A tool that takes a second or more: its call waits at a copy while the copy ends."""
    task: Tool | None = None
    """A tool that runs as a task for clients that can follow one."""
    change: Tool | None = None
    """A tool whose call makes the server send a notification that a list has changed."""
    port_variable: str = PORT_VARIABLE
    environment: Sequence[tuple[str, str]] = field(default_factory=tuple)
    vus: int = DEFAULT_VUS
    duration_s: float = DEFAULT_DURATION_S
    """Seconds of load under each policy; 0 for none."""
    time_limit_s: float = 10.0
    """Time limit of each request in seconds."""

    def check(self) -> None:
        """Raises :class:`UsageProblem` for a plan that can't be carried out."""
        if not self.command:
            raise UsageProblem("the command of the server is missing: write mcpace replicas 3 -- python server.py")
        if not FEWEST <= self.copies <= MOST:
            raise UsageProblem(f"replicas takes {FEWEST} to {MOST} copies, not {self.copies}")
