"""Common steps of kinds that are built from the adapter's sources: copying the sources, and their digest.

A server's release is defined by its lock file, so nothing is resolved and no registry is read. Its sources come from
`source/`, with the files of `versions/VERSION/` on top. `{version}` is filled into the manifests of `source/` only,
since the files of a version contain their version. A client can be built for any release, without a lock file, from the
folders that adapter.toml names for it.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

from mcpace.lab.adapters.adapter import SOURCES, VERSIONS, ClientReleases, Role
from mcpace.lab.environments.installers.protocol import InstallRequest
from mcpace.lab.errors import AdapterProblem, Unsupported

MANIFESTS = {"Cargo.toml", "go.mod", "package.json", "pom.xml"}
BUILD_FOLDERS = {"target", "node_modules", "__pycache__"}
"""Folders of builds inside the source folders, which are not copied."""


def copy_sources(request: InstallRequest, folder: Path) -> None:
    """Copies the sources to build into a folder."""
    for source, relative in source_files(request):
        place = folder / relative
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
        if place.name in MANIFESTS and not source.is_relative_to(request.adapter.folder / VERSIONS):
            place.write_text(place.read_text(encoding="utf-8").replace("{version}", request.version), encoding="utf-8")


def sources_digest(request: InstallRequest) -> str:
    """Digest of the relative paths and contents of all source files."""
    sum_ = hashlib.sha256()
    for source, relative in source_files(request):
        sum_.update(f"{relative}\0".encode())
        sum_.update(hashlib.sha256(source.read_bytes()).digest())
    return sum_.hexdigest()


def source_files(request: InstallRequest) -> Iterator[tuple[Path, Path]]:
    """Yields each source file and its relative path in the copy. Later files replace earlier ones."""
    for folder in source_folders(request):
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            relative = path.relative_to(folder)
            if path.is_file() and not BUILD_FOLDERS & set(relative.parts):
                yield path, relative


def source_folders(request: InstallRequest) -> list[Path]:
    adapter = request.adapter
    if request.role is Role.CLIENT and adapter.client is not None:
        return [adapter.folder / name for name in client_releases(request).sources]
    own = adapter.folder / VERSIONS / request.version
    if not own.is_dir():
        raise AdapterProblem(f"{own} is missing: {adapter.name}@{request.version} is built from it")
    return [adapter.folder / SOURCES, own]


def client_releases(request: InstallRequest) -> ClientReleases:
    """Package and sources of a client. Raises `Unsupported` where no range covers its release."""
    found = request.adapter.client_releases(Version(request.version))
    if found is None:
        assert request.adapter.client is not None, "parse_subject() looked"
        bounds = [bound for entry in request.adapter.client.releases for bound in entry.versions]
        first = min((bound.version for bound in bounds if bound.operator == ">="), key=Version, default="none")
        raise Unsupported(f"{request.release_label} has no client program here: the first release with one is {first}")
    return found
