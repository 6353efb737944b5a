"""Queries of registries through their package managers, which know their own configuration."""

from __future__ import annotations

import shutil

from packaging.version import InvalidVersion, Version

from mcpace.lab.environments.registries.release import Release
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.errors import ReleasesProblem
from mcpace.lab.processes.child_processes import run_child

ASK_LIMIT_S = 120.0
SHOWN = 300


def query_tool(command: list[str], package: str) -> str:
    """Runs a package manager and returns its output.

    Only the user's settings apply, not those of the current folder.
    """
    if shutil.which(command[0]) is None:
        known = f"which releases of {package} there are is for the command {command[0]} to say, which is missing"
        raise ReleasesProblem(f"{known}: {REMEDIES[command[0]]}")
    done = run_child(command, ASK_LIMIT_S, env={"GOWORK": "off"})
    if done.timed_out:
        raise ReleasesProblem(f"{command[0]} didn't say within {ASK_LIMIT_S:g} s which releases of {package} there are")
    if done.code != 0:
        why = " ".join(done.stderr.split())[-SHOWN:] or f"exit code {done.code}"
        raise ReleasesProblem(f"{command[0]} can't say which releases of {package} there are: {why}")
    return done.stdout


def sort_releases(releases: list[Release], package: str) -> list[Release]:
    """Sorts releases, oldest version first. Leaves out releases whose version isn't a number that can be compared."""
    numbered = [release for release in releases if is_number(release.version)]
    if not numbered:
        raise ReleasesProblem(f"there are no releases of {package}")
    return sorted(numbered, key=lambda release: release.parsed_version)


def is_number(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
