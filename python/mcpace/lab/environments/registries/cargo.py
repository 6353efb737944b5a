"""Crates, as cargo is configured.

cargo has no command that lists versions. `cargo info` brings its copy of the index up to date, and that is read: a file
for each crate, of JSON objects between bytes that belong to cargo.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from packaging.version import Version

from mcpace.lab.environments.registries.asking import asked, ordered
from mcpace.lab.environments.registries.release import Release, moment
from mcpace.lab.errors import ReleasesProblem


class Cargo:
    """cargo's copy of the index."""

    def where(self) -> str:
        return "cargo"

    def releases(self, package: str, where: str) -> list[Release]:
        asked(["cargo", "info", "--quiet", package], package)
        copies = list((cargo_home() / "registry" / "index").glob(f"*/.cache/{place(package)}"))
        if not copies:
            raise ReleasesProblem(f"cargo keeps no copy of what its index says of {package} under {cargo_home()}")
        return ordered(parse(max(copies, key=lambda copy: copy.stat().st_mtime).read_bytes()), package)

    def unlisted(self, package: str, number: Version) -> Release | None:
        """An index lists all that it has."""
        return None


def parse(copy: bytes) -> list[Release]:
    """Upload times are recent in the index: crates carry their own locks, so nobody asks."""
    entries = []
    for part in copy.split(b"\0"):
        if part.startswith(b"{"):
            try:
                entries.append(json.loads(part))
            except ValueError:
                continue  # cargo's own bytes
    return [
        Release(str(entry["vers"]), moment(entry["pubtime"]) if entry.get("pubtime") else None, bool(entry["yanked"]))
        for entry in entries
        if {"vers", "yanked"} <= entry.keys()
    ]


def place(package: str) -> str:
    """Where the index has a crate: by the first letters of its name."""
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
