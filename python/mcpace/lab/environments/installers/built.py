"""What the built kinds have in common: the copy that is built, and the digest of its files.

A server's release is whatever its lock says, so nothing is resolved and no registry is asked what exists. Its sources
come from `source/`, then `versions/VERSION/` is laid over them; `{version}` is filled in in the manifests of `source/`
alone, since a version's own files know theirs. A client is built of any release: of the folders that adapter.toml names
for it, without a lock.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

from mcpace.lab.adapters.adapter import SOURCES, VERSIONS, ClientReleases, Role
from mcpace.lab.environments.installers.wanted import Wanted
from mcpace.lab.errors import AdapterProblem, Unsupported

MANIFESTS = {"Cargo.toml", "go.mod", "package.json", "pom.xml"}
LEAVINGS = {"target", "node_modules", "__pycache__"}
"""What somebody who tried the sources in their place left there."""


def copy_sources(wanted: Wanted, folder: Path) -> None:
    """Puts together what is built."""
    for source, relative in sources(wanted):
        place = folder / relative
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
        if place.name in MANIFESTS and not source.is_relative_to(wanted.adapter.folder / VERSIONS):
            place.write_text(place.read_text(encoding="utf-8").replace("{version}", wanted.version), encoding="utf-8")


def digest(wanted: Wanted) -> str:
    """Of every file that is built, with its place."""
    sum_ = hashlib.sha256()
    for source, relative in sources(wanted):
        sum_.update(f"{relative}\0".encode())
        sum_.update(hashlib.sha256(source.read_bytes()).digest())
    return sum_.hexdigest()


def sources(wanted: Wanted) -> Iterator[tuple[Path, Path]]:
    """Each file and its place in the copy; later ones win."""
    for folder in folders(wanted):
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            relative = path.relative_to(folder)
            if path.is_file() and not LEAVINGS & set(relative.parts):
                yield path, relative


def folders(wanted: Wanted) -> list[Path]:
    adapter = wanted.adapter
    if wanted.role is Role.CLIENT and adapter.client is not None:
        return [adapter.folder / name for name in client_releases(wanted).sources]
    own = adapter.folder / VERSIONS / wanted.version
    if not own.is_dir():
        raise AdapterProblem(f"{own} is missing: {adapter.name}@{wanted.version} is built from it")
    return [adapter.folder / SOURCES, own]


def client_releases(wanted: Wanted) -> ClientReleases:
    """What a client is built of. Raises `Unsupported` where no range has its release."""
    found = wanted.adapter.client_releases(Version(wanted.version))
    if found is None:
        assert wanted.adapter.client is not None, "parse_subject() looked"
        bounds = [bound for entry in wanted.adapter.client.releases for bound in entry.versions]
        first = min((bound.version for bound in bounds if bound.operator == ">="), key=Version, default="none")
        raise Unsupported(f"{wanted.label} has no client program here: the first release with one is {first}")
    return found
