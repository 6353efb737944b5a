"""Plan of a measurement of a gateway, and the place of the server in the gateway's command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from mcpace.lab.errors import UsageProblem
from mcpace.lab.targets import Target

PLACE = "{direct}"
"""Words of the gateway's command in which this stands get the URL of the server, or its command over stdio."""
HOST_PLACE = "{direct_host}"
"""Stands for the host and the port of the server's URL, for the configuration of a proxy."""
DEFAULT_TRIALS = 20
DEFAULT_VUS = 10
DEFAULT_DURATION_S = 12.0
TURNS = 6


@dataclass(frozen=True)
class GatewayPlan:
    """The two paths, and the load on each."""

    direct: Target
    through: Target
    revision: str | None = None
    extra_root: Path | None = None
    vus: int = DEFAULT_VUS
    duration_s: float = DEFAULT_DURATION_S
    """Measured seconds of load on each path; 0 for no load."""

    def check(self) -> None:
        """Raises :class:`UsageProblem` for a plan that can't be carried out."""
        if self.direct.auth == "oauth" and self.direct.profile is not None:
            raise UsageProblem(f"--direct {self.direct.name} asks for OAuth, which a gateway in front of it can't pass")
        if self.through.profile is not None:
            raise UsageProblem(
                f"--through takes the gateway, and {self.through.name} is a profile: name it by --direct"
            )
        server_object = self.through.program is not None and self.through.program.server_object
        if server_object and PLACE in str(server_object):
            raise UsageProblem(f"{PLACE} stands in a command: write --through 'serve:COMMAND {PLACE}'")

    @property
    def has_place(self) -> bool:
        """Whether the command of the gateway names the server by ``{direct}``."""
        places = (PLACE, HOST_PLACE) if not self.direct.command else (PLACE,)
        return any(place in word for word in _command(self.through) for place in places)


def with_direct(gateway: Target, server: str | Sequence[str]) -> Target:
    """The gateway with the server, a URL or a command, in the places of ``{direct}`` and ``{direct_host}``.

    A word that is ``{direct}`` becomes the words of a command; inside a word, the command is quoted for a shell.
    """
    words = [server] if isinstance(server, str) else list(server)
    text = server if isinstance(server, str) else shlex.join(server)
    host = urlsplit(server).netloc if isinstance(server, str) else ""

    def filled(command: Sequence[str]) -> tuple[str, ...]:
        found: list[str] = []
        for word in command:
            found += words if word == PLACE else [word.replace(PLACE, text).replace(HOST_PLACE, host)]
        return tuple(found)

    program = gateway.program
    if program is not None and program.command:
        program = replace(program, command=filled(program.command))
    return replace(gateway, command=filled(gateway.command), program=program)


def _command(target: Target) -> tuple[str, ...]:
    return target.program.command if target.program is not None else target.command
