"""The parts of a Run that a check of a host's configuration adds: the starts of each server, and their parts.

Design constraint: data only. The parts of a start add up to its time, from the host's decision to start the server
to the complete list of its tools.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from mcpace.report.model.base import Model, Number, Whole

LEAST_SESSIONS = 3
"""Recorded sessions from which on a tool that nobody called is named."""
FASTER = 0.9
"""A start that was tried is advice where it takes less than this share of the time."""

PartCode = Literal[
    "spawn", "runner", "resolve", "fetch", "install", "interpreter", "imports", "set-up", "initialize", "list"
]


class StartPart(Model):
    """One part of a start."""

    code: PartCode
    """``spawn``: until the first program runs. ``runner``: a package runner (npx, uvx, docker) or a shell, until the
    server's own program runs, without the next three parts. ``resolve``: the package runner asks the registry and
    chooses releases. ``fetch``: it downloads packages and unpacks them. ``install``: it puts them into place.
    ``interpreter``: the interpreter's own start. ``imports``: its imports. ``set-up``: all other work until the first
    answer. ``initialize``: further messages of the negotiation. ``list``: the first list of the tools."""
    seconds: Number


class ServerStart(Model):
    """One start of a server."""

    together: bool
    """Whether all servers of the configuration were started at the same time, as hosts do."""
    cold: bool = False
    """Whether the caches of the package runner were empty."""
    round: Whole
    total_s: Number
    parts: list[StartPart] = []


class ImportTime(Model):
    """A package that the server imports as it starts."""

    name: str
    seconds: Number
    """Time of its modules, without the modules of other packages that they import."""


class TriedStart(Model):
    """Another way of starting a server that was tried."""

    code: Literal["installed", "cached-code"]
    """``installed``: the program that the package runner starts, without the package runner. ``cached-code``: with
    ``environment``, so that the interpreter keeps compiled code; without the package runner where that was tried."""
    command: str
    """The command; possible secrets are removed."""
    seconds: list[Number]
    """Times of its starts."""
    install: str = ""
    """The command that installs the program; empty where it is not known."""
    environment: dict[str, str] = {}
    """Variables that are added to the server's environment."""


class RecordedUse(Model):
    """Use of a server in the recordings of the flight recorder."""

    sessions: Whole
    """Recorded sessions in which the host listed the tools."""
    since: str
    """Date of the oldest of them."""
    calls: dict[str, Whole] = {}
    """Number of calls of each tool that was called. A host may call a tool that the server does not have."""
    answered: list[str] = []
    """Tools of which a call succeeded. The server had them, even where it no longer lists them."""

    @property
    def is_enough(self) -> bool:
        """Whether there are enough sessions to name tools that nobody called."""
        return self.sessions >= LEAST_SESSIONS

    def shows_unused_server(self, listed: Iterable[str]) -> bool:
        """Whether there are enough sessions, and none of them called a tool that the server has or had.

        ``listed``: the tools that the server lists now.
        """
        return self.is_enough and not self.answered and self.calls.keys().isdisjoint(listed)


class StartFacts(Model):
    """Facts about the starts of one server."""

    configuration: str = ""
    """Path of the configuration file."""
    host: str = ""
    starts: list[ServerStart] = []
    runner: str = ""
    """Name of the package runner or shell; empty where the host starts the server's program itself."""
    program: str = ""
    """Name of the server's own program, such as ``python3.12``."""
    processor_s: Number | None = None
    """Median processor time of the server's processes until its tools were listed."""
    rss_bytes: Whole | None = None
    """Largest memory of the server's processes."""
    imports: list[ImportTime] = []
    """The packages with the longest imports, measured in a start of its own."""
    tried: list[TriedStart] = []
    use: RecordedUse | None = None
    """Absent where no session was recorded."""
    cold_failure: str = ""
    """Reason why the start with empty caches failed."""

    def totals_s(self, *, together: bool) -> list[float]:
        """Times of the warm starts of one kind."""
        return [start.total_s for start in self.starts if start.together is together and not start.cold]


class LimitedStart(Model):
    """A start of all servers in which only some start at the same time."""

    at_once: Whole
    """Number of servers that start at the same time."""
    ready_s: list[Number]
    """For each server in the order of the ends, the time until it had listed its tools."""


class AdvisedStart(Model):
    """A start of all servers at the same time with all advice: without package runners and with caches of compiled code
    where this is faster, and without the servers that nobody called."""

    servers: Whole
    """Number of servers that were started."""
    ready_s: list[Number]
    """For each round the time until the last of them had listed its tools."""


class CheckFacts(Model):
    """Facts about a whole configuration."""

    together_s: list[Number] = []
    """For each round the time until the last of all servers, started at the same time, had listed its tools."""
    limited: LimitedStart | None = None
    """Absent where fewer servers at the same time were not tried."""
    advised: AdvisedStart | None = None
    """Absent where there is no advice, and where a server failed in this start."""
    switched_off: list[str] = []
    """Servers that the host doesn't start."""
