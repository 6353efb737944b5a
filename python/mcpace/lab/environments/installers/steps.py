"""What installers are made of: finding a tool, running it within a limit, saying in one sentence why it failed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.processes.child_processes import Done, run_child

INSTALL_LIMIT_S = 600.0
BUILD_LIMIT_S = 1_800.0
"""Compiling a Rust server with its HTTP stack, on a small machine that has other work."""
ASK_LIMIT_S = 60.0

NOISE = ("warning:", "npm warn", "[ERROR] [Help", "[ERROR] -> [Help")


class ToolchainMissing(EnvironmentProblem):
    """A tool that only some adapters need isn't here."""

    code = "toolchain-missing"


def needed(tool: str, wanted: str, remedy: str) -> str:
    """The tool's path. `wanted` says what for: asked only when that is used."""
    if found := shutil.which(tool):
        return found
    raise ToolchainMissing(f"{wanted} needs the command {tool}, which is missing: {remedy}")


def run_step(
    command: list[str], label: str, *, limit_s: float = INSTALL_LIMIT_S, cwd: Path | None = None,
    env: dict[str, str] | None = None, reason: Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """Runs one step of an installation to its end. `reason` makes one sentence of what the tool said when it failed."""
    expect_success(run_child(command, limit_s, cwd=cwd, env=env), label, limit_s, reason)


def expect_success(done: Done, label: str, limit_s: float, reason: Callable[[str], str] | None = None) -> None:
    """Raises `EnvironmentProblem` where a step didn't end well."""
    if done.timed_out:
        raise EnvironmentProblem(f"installing {label} took longer than {limit_s:g} s, and was given up")
    if done.code != 0:
        # Maven says what is wrong on stdout.
        why = (reason or in_one_line)(done.stderr or done.stdout)
        raise EnvironmentProblem(f"{label} can't be installed: {why}")


def asked(command: list[str], pattern: str) -> str:
    """What a tool says its version is; `unknown` when it doesn't."""
    done = run_child(command, ASK_LIMIT_S)
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else "unknown"


def in_one_line(text: str, lines: int = 8, limit: int = 600) -> str:
    """The end of what a command said, as one sentence. uv draws its reasons as a tree: the drawing goes."""
    kept = [line.strip(" \t│├╰─▶×") for line in text.splitlines()]
    kept = [line for line in kept if line and not line.startswith(NOISE)]
    return (" ".join(kept[-lines:]) or "it gave no reason")[-limit:].strip()
