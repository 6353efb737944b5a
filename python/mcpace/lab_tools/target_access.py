"""The targets that a tool may connect to: addresses of this machine, scripted servers, and targets that the user named.

Design constraint: Only the user who starts ``mcpace mcp`` can allow a target. A file that an agent can write never
does: the configuration is compared with its state at the start before each use.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcpace.lab import targets
from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import read_text
from mcpace.lab.server_configuration import MOST_BYTES, read_configuration
from mcpace.report.words.quantities import clean

LOOPBACK = re.compile(
    r"https?://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?(?:[/?][\w.~!$&'()*+,;=:@%/?-]*)?", re.ASCII
)
"""URLs of this machine. The pattern has no user information and no backslash, which URL parsers read in two ways."""
MOST_NAMED = 20
"""Maximum number of targets that a message lists."""


@dataclass(frozen=True)
class AllowedTarget:
    """A target that a tool may connect to."""

    text: str
    """TARGET of the command line."""
    config: Path | None = None
    """The configuration that names the target."""
    starts: str = ""
    """Command that is started for the target, without its secrets; empty where the target already runs."""

    def options(self) -> list[str]:
        """Options of the command line that belong to the target."""
        return [f"--config={self.config}"] if self.config else []


class TargetAccess:
    """Decides which targets are allowed."""

    def __init__(self, allowed: Sequence[str] = (), config: Path | None = None) -> None:
        """``allowed`` are further targets; ``config`` is a host's ``mcp.json``, all servers of which are allowed.

        Raises :class:`UsageProblem` where a target or the configuration can't be read.
        """
        self._allowed = {text: _target_command(targets.parse_target(text)) for text in allowed}
        self._config = config.resolve() if config else None
        self._digest = _digest(self._config) if self._config else ""
        self._configured = read_configuration(self._config).entries if self._config else {}

    def check(self, text: str) -> AllowedTarget:
        """The target that a caller names.

        Raises :class:`UsageProblem` where the target is not allowed, or the configuration has changed.
        """
        if text in self._allowed:
            return AllowedTarget(text, starts=self._allowed[text])
        if self._config is not None and text in self._configured:
            if _digest(self._config) != self._digest:
                raise UsageProblem(
                    f"{self._config} has changed since `mcpace mcp` started, so its servers are no longer allowed: "
                    "restart `mcpace mcp`"
                )
            return AllowedTarget(text, self._config, _target_command(targets.parse_target(text, config=self._config)))
        if LOOPBACK.fullmatch(text):
            return AllowedTarget(text)
        if text.startswith("profile:"):
            targets.parse_target(text)
            return AllowedTarget(text)
        named = [clean(name, 80) for name in (*self._allowed, *self._configured)][:MOST_NAMED]
        raise UsageProblem(
            f"{clean(text, 120)!r} is not an allowed target: give a URL of this machine "
            f"(http://127.0.0.1:PORT/PATH){''.join(f', {name}' for name in named)}; the user allows other targets with "
            "`mcpace mcp --allow TARGET` or `--config mcp.json`"
        )


def _target_command(target: targets.Target) -> str:
    """Command that is started for a target, without its secrets."""
    if target.command:
        return targets.redact_command(shlex.join(target.command))
    if target.program:
        return targets.redact_command(shlex.join(target.program.command)) or target.program.server_object
    return ""


def _digest(config: Path) -> str:
    text = read_text(config, "the configuration", MOST_BYTES)
    return hashlib.sha256(text.encode()).hexdigest()
