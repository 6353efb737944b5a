"""Lists missing requirements for building mcpace, or with `--tests` for testing it, with the commands that install
them. `--servers`: of what the tests need, the servers alone. `--page`: what the report's page is built with.

For tests, what Debian has in one package is installed where this may be done: as root, with apt-get.
Standard library only: it runs first.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from mcpace.lab.environments.toolchains import PROGRAMS, find_command

# Programs that the tests run.
SERVERS = ("redis", "postgresql")
PACKAGES = (*SERVERS, "chromium", "ip", "nft", "sshd")
INSTALL_LIMIT_S = 600

RUST = (1, 89)
PYTHON = (3, 11)
NODE = (20, 19)


def problems() -> list[str]:
    """One line for each missing requirement of the build."""
    found = []
    if sys.version_info < PYTHON:
        found.append(
            f"Python {PYTHON[0]}.{PYTHON[1]} or newer is needed, this is {sys.version.split()[0]}: "
            "install it and run make PYTHON=python3.11 …"
        )
    if importlib.util.find_spec("ensurepip") is None:
        found.append("Python's venv module is missing: apt-get install python3-venv")
    rust = rust_version()
    if rust is None:
        found.append(f"Rust is missing: {PROGRAMS['cargo'].remedy}")
    elif rust < RUST:
        found.append(f"Rust {RUST[0]}.{RUST[1]} or newer is needed, this is {rust[0]}.{rust[1]}: rustup update stable")
    if shutil.which("cc") is None:
        found.append("a C compiler is missing: apt-get install build-essential")
    return found


def test_problems() -> list[str]:
    """One line for each missing requirement of the tests, which run real clients and servers of other languages."""
    found = [
        f"{' or '.join(program.missing())} is missing, for {use}: {program.remedy}"
        for program, use in ((PROGRAMS["go"], "the Go SDK's client"), (PROGRAMS["maven"], "the Java SDK's server"))
        if program.missing()
    ]
    return found + page_problems() + missing_programs(PACKAGES)


def page_problems() -> list[str]:
    """One line for each missing requirement for building the report's page."""
    node = version_of("node", r"v(\d+)\.(\d+)")
    if node is None or shutil.which("npm") is None:
        return [f"Node with npm is missing, for the report's page: {PROGRAMS['npm'].remedy}"]
    if node < NODE:
        return [f"Node {NODE[0]}.{NODE[1]} or newer is needed for the report's page, this is {node[0]}.{node[1]}"]
    return []


def missing_programs(names: tuple[str, ...]) -> list[str]:
    """One line for each missing program that tests run."""
    programs = [PROGRAMS[name] for name in names]
    return [f"{', '.join(one.missing())} is missing: {one.remedy}" for one in programs if one.missing()]


def install_packages(names: tuple[str, ...]) -> None:
    """Installs the missing packages. Where that isn't permitted or fails, they stay missing and are listed."""
    missing = [PROGRAMS[name].packages for name in names if PROGRAMS[name].missing()]
    if not missing or os.geteuid() != 0 or find_command("apt-get") is None:
        return
    print(f"mcpace: installing {', '.join(missing)} with apt-get", file=sys.stderr)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    for command in (install, ["apt-get", "update"], install):
        # The package lists may be older than the archive, or missing.
        done = subprocess.run(command, env=quiet, stdout=sys.stderr, timeout=INSTALL_LIMIT_S, check=False)
        if command is install and done.returncode == 0:
            return


def rust_version() -> tuple[int, int] | None:
    """Version of the cargo on PATH; ``None`` where there is none."""
    return version_of("cargo", r"cargo (\d+)\.(\d+)")


def version_of(program: str, pattern: str) -> tuple[int, int] | None:
    """Version that a program prints; ``None`` where it is missing."""
    found = shutil.which(program)
    if found is None:
        return None
    done = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=60, check=False)
    match = re.search(pattern, done.stdout)
    return (int(match[1]), int(match[2])) if match else None


if __name__ == "__main__":
    missing = problems()
    if "--tests" in sys.argv:
        install_packages(PACKAGES)
        missing += test_problems()
    elif "--servers" in sys.argv:
        install_packages(SERVERS)
        missing += missing_programs(SERVERS)
    elif "--page" in sys.argv:
        missing = page_problems()
    for line in missing:
        print(f"mcpace: {line}", file=sys.stderr)
    sys.exit(3 if missing else 0)
