"""Programs that only some work needs: the commands of each, and what installs it.

Design constraint: Standard library only, because scripts/doctor.py reads this file before anything is installed.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")
"""Folders of servers' programs, which a user's PATH may lack. PostgreSQL's are in a folder of each version."""


@dataclass(frozen=True)
class Program:
    """A program, or several that belong together."""

    commands: tuple[str, ...]
    packages: str = ""
    """Debian's packages that contain the commands; empty where Debian has none."""
    otherwise: str = ""
    """Further words of the remedy."""
    version: tuple[str, ...] = ("--version",)
    """Arguments with which the first command prints its version."""

    @property
    def remedy(self) -> str:
        """How to install it, in words."""
        install = f"apt-get install {self.packages}" if self.packages else ""
        return f"{install}{self.otherwise}"

    def missing(self) -> list[str]:
        """The commands that are not installed."""
        return [command for command in self.commands if find_command(command) is None]


PROGRAMS = {
    "cargo": Program(("cargo",), "rustup", " && rustup default stable, or see rustup.rs"),
    "chromium": Program(("chromium",), "chromium"),
    "go": Program(("go",), "golang-go", ", or see go.dev/dl", ("version",)),
    "ip": Program(("ip",), "iproute2"),
    "k6": Program(("k6",), "", "see grafana.com/docs/k6", ("version",)),
    "maven": Program(("javac", "mvn"), "default-jdk-headless maven", " (a JDK of 17 or newer)"),
    "nft": Program(("nft",), "nftables"),
    "npm": Program(("node", "npm"), "nodejs npm", ", or see nodejs.org"),
    "perf": Program(("perf",), "linux-perf"),
    "postgresql": Program(("initdb",), "postgresql"),
    "redis": Program(("redis-server",), "redis-server"),
    "sshd": Program(("sshd", "ssh"), "openssh-server openssh-client", "", ("-V",)),
    "wrk": Program(("wrk",), "wrk", "", ("-v",)),
}
REMEDIES = {name: program.remedy for name, program in PROGRAMS.items()}


def find_command(command: str) -> str | None:
    """Path of an installed command; ``None`` where there is none."""
    folders = [os.environ.get("PATH", os.defpath), *FOLDERS, *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
    return shutil.which(command, path=os.pathsep.join(folders))
