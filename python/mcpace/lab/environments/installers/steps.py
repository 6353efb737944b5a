"""Common steps of installers: finding a tool, running it with a time limit, and reporting its failure."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.processes.child_processes import Done, run_child

INSTALL_LIMIT_S = 600.0
BUILD_LIMIT_S = 1_800.0
"""Time limit of a build: compiling a Rust server with its HTTP stack on a small, busy machine."""
ASK_LIMIT_S = 60.0

NOISE = ("warning:", "npm warn", "[ERROR] [Help", "[ERROR] -> [Help")


class ToolchainMissing(EnvironmentProblem):
    """A tool that only some adapters need is missing."""

    code = "toolchain-missing"


def require_tool(tool: str, request: str, remedy: str) -> str:
    """Returns the tool's path. `wanted` names the release that needs the tool, for the message."""
    if found := shutil.which(tool):
        return found
    raise ToolchainMissing(f"{request} needs the command {tool}, which is missing: {remedy}")


def run_step(
    command: list[str], label: str, *, limit_s: float = INSTALL_LIMIT_S, cwd: Path | None = None,
    env: dict[str, str] | None = None, reason: Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """Runs one step of an installation. `reason` extracts the reason of a failure from the tool's output."""
    expect_success(run_child(command, limit_s, cwd=cwd, env=env), label, limit_s, reason)


def expect_success(done: Done, label: str, limit_s: float, reason: Callable[[str], str] | None = None) -> None:
    """Raises `EnvironmentProblem` where a step failed."""
    if done.timed_out:
        raise EnvironmentProblem(f"installing {label} took longer than {limit_s:g} s, and was given up")
    if done.code != 0:
        # Maven reports errors on stdout.
        why = (reason or in_one_line)(done.stderr or done.stdout)
        raise EnvironmentProblem(f"{label} can't be installed: {why}")


def read_version(command: list[str], pattern: str) -> str:
    """Runs a tool's version command and returns the version; `unknown` where the output has none."""
    done = run_child(command, ASK_LIMIT_S)
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else "unknown"


def in_one_line(text: str, lines: int = 8, limit: int = 600) -> str:
    """Joins the last lines of a command's output. Removes the tree drawing of uv's messages."""
    kept = [line.strip(" \t│├╰─▶×") for line in text.splitlines()]
    kept = [line for line in kept if line and not line.startswith(NOISE)]
    return (" ".join(kept[-lines:]) or "it gave no reason")[-limit:].strip()
