"""Releases of crates, read with cargo's configuration.

cargo has no command that lists versions. `cargo info` updates cargo's copy of the index, which is then read. It has one
file for each crate, with JSON objects between bytes of cargo's own format.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from packaging.version import Version

from mcpace.lab.environments.registries.asking import query_tool, sort_releases
from mcpace.lab.environments.registries.release import Release, parse_time
from mcpace.lab.errors import ReleasesProblem


class Cargo:
    """cargo's copy of the index."""

    def index_address(self) -> str:
        return "cargo"

    def listed_releases(self, package: str, where: str) -> list[Release]:
        query_tool(["cargo", "info", "--quiet", package], package)
        copies = list((cargo_home() / "registry" / "index").glob(f"*/.cache/{index_path(package)}"))
        if not copies:
            raise ReleasesProblem(f"cargo keeps no copy of what its index says of {package} under {cargo_home()}")
        return sort_releases(parse_releases(max(copies, key=lambda copy: copy.stat().st_mtime).read_bytes()), package)

    def find_unlisted(self, package: str, number: Version) -> Release | None:
        """Returns `None`: the index lists all releases."""
        return None


def parse_releases(copy: bytes) -> list[Release]:
    """Parses the index's file of a crate.

    Old entries lack upload times, which aren't needed: crates have lock files.
    """
    entries = []
    for part in copy.split(b"\0"):
        if part.startswith(b"{"):
            try:
                entries.append(json.loads(part))
            except ValueError:
                continue  # cargo's own bytes
    return [
        Release(
            str(entry["vers"]), parse_time(entry["pubtime"]) if entry.get("pubtime") else None, bool(entry["yanked"])
        )
        for entry in entries
        if {"vers", "yanked"} <= entry.keys()
    ]


def index_path(package: str) -> str:
    """Path of a crate in the index, by the first letters of its name."""
    name = package.lower()
    match len(name):
        case 1 | 2:
            return f"{len(name)}/{name}"
        case 3:
            return f"3/{name[0]}/{name}"
        case _:
            return f"{name[:2]}/{name[2:4]}/{name}"


def cargo_home() -> Path:
    return Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
