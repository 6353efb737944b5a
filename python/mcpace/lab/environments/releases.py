"""Selection of releases among those that a registry lists, and the cache of the registries' answers.

Answers are cached on disk for an hour. An older answer is used, with a note, when the registry can't be reached.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from mcpace.lab.environments.registries import REGISTRIES
from mcpace.lab.environments.registries.release import Release
from mcpace.lab.errors import ReleasesProblem, UsageProblem
from mcpace.lab.paths import cache_folder

if TYPE_CHECKING:  # adapters resolve their versions here
    from mcpace.lab.adapters.adapter import Adapter

__all__ = [
    "Exact", "Newest", "Release", "Say", "Selection", "UnknownVersion",
    "choose_version", "client_release", "find_release", "list_releases", "parse_selection", "releases_between",
    "select_release",
]  # fmt: skip

FRESH_FOR_S = 3_600.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Exact:
    """One release, by its number."""

    number: Version

    def __str__(self) -> str:
        return str(self.number)


@dataclass(frozen=True)
class Newest:
    """The newest stable release, of a major version if one is given."""

    major: int | None = None

    def __str__(self) -> str:
        return "latest" if self.major is None else f"{self.major}.x"


Selection = Exact | Newest


class UnknownVersion(UsageProblem):
    """A version that was never published. The message names the nearest versions."""

    code = "unknown-version"


def parse_selection(text: str) -> Selection:
    """`1.12.1`, `latest`, or `1.x`. Raises `UsageProblem` for anything else."""
    if text == "latest":
        return Newest()
    if major := re.fullmatch(r"(\d+)\.x", text):
        return Newest(int(major[1]))
    try:
        return Exact(Version(text))
    except InvalidVersion:
        raise UsageProblem(f"{text!r} is not a version: write a number like 1.12.1, `latest`, or `1.x`") from None


def find_release(package: str, selection: Selection, say: Say | None = None, kind: str = "pypi") -> Release:
    """Finds the release that a selection names. Raises `UnknownVersion` with the nearest versions."""
    return select_release(package, selection, list_releases(package, say=say, kind=kind))


def select_release(package: str, selection: Selection, known: Sequence[Release]) -> Release:
    """Selects one of the known releases. Raises `UnknownVersion` with the nearest versions."""
    if isinstance(selection, Exact):
        chosen = [release for release in known if release.parsed_version == selection.number]
    else:
        chosen = [
            release
            for release in known
            if release.is_stable and selection.major in (None, release.parsed_version.major)
        ]
    if not chosen:
        raise unknown_version(str(selection), known, package)
    return chosen[-1]


def client_release(adapter: Adapter, selection: Selection, say: Say | None = None) -> Release:
    """Selects a release of an adapter's client, including releases that the registry doesn't list."""
    known = client_releases(adapter, say)
    if isinstance(selection, Exact) and all(release.parsed_version != selection.number for release in known):
        for package in adapter.client_packages(selection.number):
            if found := REGISTRIES[adapter.install.kind.value].find_unlisted(package, selection.number):
                return found
    return select_release(adapter.name, selection, known)


def client_releases(adapter: Adapter, say: Say | None = None) -> list[Release]:
    """All releases of an adapter's client, oldest version first. Each package contributes the versions it covers."""
    found = [
        release
        for package in adapter.client_packages()
        for release in list_releases(package, say=say, kind=adapter.install.kind.value)
        if package in adapter.client_packages(release.parsed_version)
    ]
    return sorted(found, key=lambda release: release.parsed_version)


def choose_version(selection: Selection, versions: list[str], there_are: str) -> str:
    """Selects one of a complete list of versions. Raises `UnknownVersion` with all of them.

    `latest` means a prerelease only where there is no stable version: each version is in the list on purpose.
    """
    numbers = {version: Version(version) for version in versions}
    if isinstance(selection, Exact):
        matches = [version for version, number in numbers.items() if number == selection.number]
    else:
        of_major = [v for v, number in numbers.items() if selection.major in (None, number.major)]
        matches = [version for version in of_major if not numbers[version].is_prerelease] or of_major
    if not matches:
        raise UnknownVersion(f"{there_are} {', '.join(sorted(versions, key=Version))}")
    return max(matches, key=Version)


def releases_between(adapter: Adapter, good: str, bad: str, say: Say | None = None) -> list[Release]:
    """Stable releases between two ends, including both ends, oldest version first.

    `good` may be the newer end. The ends themselves may be prereleases, yanked or unlisted, since the user named them.
    """
    ends = [client_release(adapter, parse_selection(text), say) for text in (good, bad)]
    low, high = sorted(ends, key=lambda release: release.parsed_version)
    if low.parsed_version == high.parsed_version:
        raise UsageProblem(
            f"there is nothing between {adapter.name} {low.parsed_version} and itself: give two releases"
        )
    inside = [
        release
        for release in client_releases(adapter, say)
        if low.parsed_version < release.parsed_version < high.parsed_version
        and release.is_stable
        and adapter.covers_version(release.parsed_version)
    ]
    return [low, *inside, high]


def list_releases(
    package: str, *, max_age_s: float = FRESH_FOR_S, say: Say | None = None, kind: str = "pypi"
) -> list[Release]:
    """All releases of a package that its registry lists, oldest version first.

    Raises `ReleasesProblem` where the registry can't be read and no earlier answer is cached.
    """
    registry = REGISTRIES[kind]
    where = registry.index_address()
    path = cache_path(package, where, kind)
    cached = read_cache(path)
    if cached is not None and 0 <= time.time() - cached.fetched < max_age_s:
        return cached.releases
    try:
        found = registry.listed_releases(package, where)
    except ReleasesProblem as problem:
        if cached is None:
            raise
        if say is not None:
            when = datetime.fromtimestamp(cached.fetched, UTC).date()
            say(f"{problem}; going on with the list of {when}")
        return cached.releases
    write_cache(path, found)
    return found


def unknown_version(requested: str, known: Sequence[Release], package: str) -> UnknownVersion:
    is_number = requested != "latest" and not requested.endswith(".x")
    near = _nearest_releases(Version(requested), known) if is_number else []
    hint = f"; nearest: {', '.join(near)}" if near else ""
    stable = [release.version for release in known if release.is_stable]
    span = f" (published: {stable[0]} to {stable[-1]})" if stable else ""
    return UnknownVersion(f"{package} has no release {requested}{hint}{span}")


def _nearest_releases(requested: Version, known: Sequence[Release]) -> list[str]:
    """Releases just below and above a number; stable ones where there are any."""
    numbers = (
        sorted((release for release in known if release.is_stable), key=lambda release: release.parsed_version) or known
    )
    below = [release.version for release in numbers if release.parsed_version < requested]
    above = [release.version for release in numbers if release.parsed_version > requested]
    return below[-1:] + above[:1]


@dataclass(frozen=True)
class CachedReleases:
    fetched: float
    """Seconds since 1970."""
    releases: list[Release]


def cache_path(package: str, where: str, kind: str) -> Path:
    # A registry's address may contain credentials, so only its hash is written. Names of npm and Go have slashes.
    name = canonicalize_name(package) if kind == "pypi" else re.sub(r"[^\w.-]+", "-", package).strip("-")
    return cache_folder() / "releases" / f"{name}-{hashlib.sha256(where.encode()).hexdigest()[:8]}.json"


def read_cache(path: Path) -> CachedReleases | None:
    """Reads a cached answer; `None` where there is none, or where it can't be read."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        found = [
            Release(version, datetime.fromisoformat(uploaded) if uploaded else None, bool(yanked))
            for version, uploaded, yanked in stored["releases"]
            if Version(version)
        ]
        return CachedReleases(float(stored["fetched"]), found)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_cache(path: Path, releases: list[Release]) -> None:
    """Writes the answer to the cache. Errors are ignored: they only cost another request next time."""
    rows = [
        [release.version, release.uploaded and release.uploaded.isoformat(), release.yanked] for release in releases
    ]
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({"fetched": time.time(), "releases": rows}), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
