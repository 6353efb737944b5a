"""What the kinds with committed locks have in common: the copy that is built, and the digest of its files.

A release is whatever its lock says, so nothing is resolved here and no registry is asked what exists. Sources come from
`source/`, then `versions/VERSION/` is laid over them; `{version}` is filled in in the manifests of `source/` alone,
since a version's own files know theirs.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from mcpace.lab.adapters import SOURCES, VERSIONS, Adapter
from mcpace.lab.errors import AdapterProblem
from mcpace.lab.installers.wanted import Wanted

MANIFESTS = {"Cargo.toml", "go.mod", "package.json", "pom.xml"}
LEAVINGS = {"target", "node_modules", "__pycache__"}
"""What somebody who tried the sources in their place left there."""


def copy_sources(wanted: Wanted, folder: Path) -> None:
    """Puts together what is built."""
    for source, relative in sources(wanted.adapter, wanted.version):
        place = folder / relative
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
        if place.name in MANIFESTS and source.is_relative_to(wanted.adapter.folder / SOURCES):
            place.write_text(place.read_text(encoding="utf-8").replace("{version}", wanted.version), encoding="utf-8")


def digest(wanted: Wanted) -> str:
    """Of every file that is built, with its place."""
    sum_ = hashlib.sha256()
    for source, relative in sources(wanted.adapter, wanted.version):
        sum_.update(f"{relative}\0".encode())
        sum_.update(hashlib.sha256(source.read_bytes()).digest())
    return sum_.hexdigest()


def sources(adapter: Adapter, version: str) -> Iterator[tuple[Path, Path]]:
    """Each file and its place in the copy; later ones win."""
    own = adapter.folder / VERSIONS / version
    if not own.is_dir():
        raise AdapterProblem(f"{own} is missing: {adapter.name}@{version} is built from it")
    for folder in (adapter.folder / SOURCES, own):
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            relative = path.relative_to(folder)
            if path.is_file() and not LEAVINGS & set(relative.parts):
                yield path, relative
