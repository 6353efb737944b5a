"""Programs that run another program: package runners, shells and interpreters, by the name of their file."""

from __future__ import annotations

import re
from pathlib import Path

NAMES = {
    "npx": "npx",
    "npx-cli.js": "npx",
    "npm": "npm",
    "npm-cli.js": "npm",
    "pnpm": "pnpm",
    "pnpx": "pnpm",
    "yarn": "yarn",
    "bunx": "bunx",
    "uvx": "uvx",
    "uv": "uv",
    "pipx": "pipx",
    "docker": "docker",
    "podman": "podman",
}
RUNNERS = {f"{name}{ending}": runner for name, runner in NAMES.items() for ending in ("", ".cmd", ".exe")}
"""Package runners by the name of their program or script. Windows has them as ``npx.cmd`` and ``uvx.exe``."""
SHELLS = ("sh", "bash", "dash", "zsh", "env")
"""Programs that start another one and add nothing to it."""
SHELL = "shell"
INTERPRETERS = re.compile(r"(?:bun|deno|node|python|ruby)[\d.]*")
"""Programs that run the script or module which the first word of the command without a hyphen names."""
OTHERS = ("sh", "dotnet", "java")


def split_title(command: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a command. npm writes its own command line as one word: ``npm exec PACKAGE``."""
    first = tuple(command[0].split(" ")) if command and command[0].startswith("npm ") else command[:1]
    return (*first, *command[1:])


def runner_name(path: str, command: tuple[str, ...]) -> str:
    """Name of the package runner or shell that a process is; empty for any other program.

    ``path``: of the program. ``npm exec`` and ``npm x`` are npx, and other commands of npm are not.
    """
    words = split_title(command)
    names = [Path(path).name, *(Path(word).name for word in words[:2])]
    for name in names:
        if name in RUNNERS:
            after = words[max(names.index(name), 1) :][:1]
            return "npx" if RUNNERS[name] == "npm" and after in (("exec",), ("x",)) else RUNNERS[name]
    return SHELL if names[0] in SHELLS else ""


def runs_another(name: str) -> bool:
    """Whether a program of this name runs another one, which a later word of its command names."""
    return name in RUNNERS or name in OTHERS or INTERPRETERS.fullmatch(name) is not None
