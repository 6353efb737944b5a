"""The command that installs a package, from the command that runs it with a package runner."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import dropwhile
from pathlib import Path

from mcpace.lab.check.start_watch import ProgramStart
from mcpace.lab.processes.runners import RUNNERS
from mcpace.lab.targets import redact_command

INSTALLERS = {
    "npx": ("npm install --global", ("--package", "-p")),
    "uvx": ("uv tool install", ("--from",)),
    "uv": ("uv tool install", ("--from",)),
}
"""For each package runner: the command that installs, and options that name the package."""
PLAIN_OPTIONS = ("-y", "--yes", "-q", "--quiet")
"""Options of package runners without a value."""
SUBCOMMANDS = ("exec", "tool", "run", "x")


def install_command(command: Sequence[str], program: ProgramStart) -> str:
    """The command that installs the package of a package runner; empty where it is not known."""
    found = INSTALLERS.get(RUNNERS.get(Path(command[0]).name, ""))
    if found is None or not program.runner:
        return ""
    installer, package_options = found
    words = list(dropwhile(lambda word: word in SUBCOMMANDS, command[1:]))
    while words and words[0] in PLAIN_OPTIONS:
        words.pop(0)
    if len(words) > 1 and words[0] in package_options:
        words.pop(0)
    # The value of an unknown option is no package.
    if not words or words[0].startswith("-"):
        return ""
    return redact_command(f"{installer} {shlex.quote(words[0])}")
