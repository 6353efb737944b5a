"""Which releases of a package exist, and when each was uploaded.

The index is the one that uv is configured with: no host is named here. Read through the Simple API (PEP 691 with
the upload times of PEP 700; the HTML form too, where a mirror puts them in `data-upload-time`). Answers are kept
on disk for an hour, and used past that when the index can't be reached, saying so.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from mcpace.lab.errors import LabError, ReleasesProblem, UsageProblem, nearest
from mcpace.lab.places import cache_folder, find_uv

if TYPE_CHECKING:  # adapters resolve their versions here
    from mcpace.lab.adapters import Adapter

ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
FRESH_FOR_S = 3_600.0
TIMEOUT_S = 30.0
SIZE_LIMIT = 64 * 1024 * 1024

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Release:
    version: str
    """In its normal form: `1.12.0`."""
    uploaded: datetime
    """When the first of its files was uploaded, UTC."""
    yanked: bool

    @property
    def number(self) -> Version:
        """For comparing: strings don't sort as versions do."""
        return Version(self.version)

    @property
    def prerelease(self) -> bool:
        return self.number.is_prerelease

    @property
    def stable(self) -> bool:
        return not (self.yanked or self.prerelease)


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
    """A version that was never published; the message names the nearest."""

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
        raise UsageProblem(f"{text!r} is no version: write a number like 1.12.1, `latest`, or `1.x`") from None


def find(package: str, selection: Selection, progress: Progress | None = None) -> Release:
    """The release that a user's selection means. Raises `UnknownVersion`, naming the nearest."""
    known = published(package, progress=progress)
    if isinstance(selection, Exact):
        chosen = [release for release in known if release.number == selection.number]
    else:
        chosen = [release for release in known if release.stable and selection.major in (None, release.number.major)]
    if not chosen:
        raise unknown(str(selection), known, package)
    return chosen[-1]


def choose(selection: Selection, versions: list[str], there_are: str) -> str:
    """The version that is meant, where all that there are have been counted. Raises `UnknownVersion`, naming them.

    A prerelease is `latest` only where nothing else is: a lock is there on purpose.
    """
    numbers = {version: Version(version) for version in versions}
    if isinstance(selection, Exact):
        meant = [version for version, number in numbers.items() if number == selection.number]
    else:
        of_major = [v for v, number in numbers.items() if selection.major in (None, number.major)]
        meant = [version for version in of_major if not numbers[version].is_prerelease] or of_major
    if not meant:
        raise UnknownVersion(f"{there_are} {', '.join(sorted(versions, key=Version))}")
    return max(meant, key=Version)


def between(adapter: Adapter, good: str, bad: str, progress: Progress | None = None) -> list[Release]:
    """The stable releases from one end to the other, both included, oldest version first.

    `good` may be the newer one. An end that is a prerelease or yanked is kept: it was asked for by name.
    """
    package = adapter.install.package
    ends = [find(package, parse_selection(text), progress).number for text in (good, bad)]
    low, high = min(ends), max(ends)
    if low == high:
        raise UsageProblem(f"there is nothing between {package} {low} and itself: give two different releases")
    return [
        release
        for release in published(package, progress=progress)
        if low <= release.number <= high and (release.stable or release.number in ends)
    ]


def published(package: str, *, max_age_s: float = FRESH_FOR_S, progress: Progress | None = None) -> list[Release]:
    """All releases of a package, oldest version first.

    Raises `ReleasesProblem` when the index can't be read and no earlier answer is kept.
    """
    package = canonicalize_name(package)
    index = index_url()
    path = cache_path(package, index)
    kept = read_kept(path)
    if kept is not None and 0 <= time.time() - kept.fetched < max_age_s:
        return kept.releases
    try:
        found = fetch(package, index)
    except ReleasesProblem as problem:
        if kept is None:
            raise
        if progress is not None:
            when = datetime.fromtimestamp(kept.fetched, UTC).date()
            progress(f"{problem}; going on with the list of {when}")
        return kept.releases
    keep(path, found)
    return found


def unknown(asked: str, known: list[Release], package: str) -> UnknownVersion:
    numbers = [release.version for release in known]
    near = [] if asked.endswith(".x") else nearest(asked, numbers)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    stable = [release.version for release in known if release.stable]
    span = f" (published: {stable[0]} to {stable[-1]})" if stable else ""
    return UnknownVersion(f"{package} has no release {asked}{hint}{span}")


def index_url() -> str:
    """The package index as uv is configured: environment, uv.toml; else pip's variable.

    Resolving nothing makes uv print its index without touching the network. uv reads no pip configuration, so
    PIP_INDEX_URL counts only where uv says nothing else was chosen, by answering with no index at all.
    """
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if url := os.environ.get(variable, ""):
            # UV_DEFAULT_INDEX may name its index: name=url.
            return url.partition("=")[2] if "=" in url.partition("://")[0] else url
    try:
        done = subprocess.run(
            [str(find_uv()), "pip", "compile", "-", "--emit-index-url", "--no-deps", "--python", sys.executable],
            input="",
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        for line in done.stdout.splitlines():
            if line.startswith("--index-url "):
                return line.removeprefix("--index-url ").strip()
        reason = last_line(done.stderr)
    except (LabError, OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    if pip_url := os.environ.get("PIP_INDEX_URL"):
        return pip_url
    raise ReleasesProblem(f"no package index is configured ({reason}): set UV_DEFAULT_INDEX")


def fetch(package: str, index: str) -> list[Release]:
    url, headers = split_credentials(f"{index.rstrip('/')}/{package}/")
    shown = urllib.parse.urlsplit(url).netloc
    request = urllib.request.Request(url, headers={"Accept": ACCEPT, **headers})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
            body = read_limited(reply)
            content_type = reply.headers.get_content_type()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise ReleasesProblem(f"the package index at {shown} has no package {package!r}") from None
        raise ReleasesProblem(f"the package index at {shown} answered {error.code} for {package!r}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ReleasesProblem(
            f"the package index at {shown} could not be reached: {reason}; check the network, or set UV_DEFAULT_INDEX"
        ) from error
    files = json_files(body) if content_type.endswith("json") else html_files(body)
    found = group(files)
    if not found:
        raise ReleasesProblem(
            f"the package index at {shown} gives no upload times for {package!r}: old releases can't be installed "
            "as of their own time; set UV_DEFAULT_INDEX to an index that has them"
        )
    return found


def read_limited(reply: Any) -> bytes:
    """The whole body, within the size limit and one deadline (the socket's own time-out is per read)."""
    deadline = time.monotonic() + 4 * TIMEOUT_S
    body = bytearray()
    while part := reply.read1(1 << 16):
        body += part
        if len(body) > SIZE_LIMIT:
            raise ValueError(f"its answer is larger than {SIZE_LIMIT >> 20} MiB")
        if time.monotonic() > deadline:
            raise TimeoutError("its answer took too long")
    return bytes(body)


@dataclass(frozen=True)
class File:
    name: str
    uploaded: str | None
    yanked: bool


def json_files(body: bytes) -> list[File]:
    """PEP 691; `yanked` is a boolean or a reason."""
    try:
        entries = json.loads(body)["files"]
        return [
            File(entry["filename"], entry.get("upload-time"), entry.get("yanked", False) is not False)
            for entry in entries
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReleasesProblem(f"the package index's answer can't be understood: {error!r}") from error


def html_files(body: bytes) -> list[File]:
    """PEP 503, with the upload time in an attribute."""
    files: list[File] = []

    class Anchors(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag != "a":
                return
            values = dict(attrs)
            path = urllib.parse.urlsplit(values.get("href") or "").path
            name = urllib.parse.unquote(path.rsplit("/", 1)[-1])
            files.append(File(name, values.get("data-upload-time"), "data-yanked" in values))

    Anchors().feed(body.decode("utf-8", "replace"))
    return files


def group(files: list[File]) -> list[Release]:
    """Files to releases. Files without an upload time, and what is neither wheel nor sdist, are left out."""
    uploads: dict[Version, list[tuple[datetime, bool]]] = {}
    for file in files:
        version = version_of(file.name)
        if version is None or file.uploaded is None:
            continue
        try:
            uploaded = datetime.fromisoformat(file.uploaded)
        except ValueError:
            continue
        uploaded = uploaded.replace(tzinfo=uploaded.tzinfo or UTC).astimezone(UTC)
        uploads.setdefault(version, []).append((uploaded, file.yanked))
    return [
        Release(str(version), min(when for when, _ in entries), all(yanked for _, yanked in entries))
        for version, entries in sorted(uploads.items())
    ]


def version_of(file_name: str) -> Version | None:
    try:
        if file_name.endswith(".whl"):
            return parse_wheel_filename(file_name)[1]
        return parse_sdist_filename(file_name)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None


@dataclass(frozen=True)
class Kept:
    fetched: float
    """Seconds since 1970."""
    releases: list[Release]


def cache_path(package: str, index: str) -> Path:
    # The index may carry credentials: only its hash is written.
    return cache_folder() / "releases" / f"{package}-{hashlib.sha256(index.encode()).hexdigest()[:8]}.json"


def read_kept(path: Path) -> Kept | None:
    """An earlier answer. One that can't be read counts as none: it will be fetched again."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Kept(
            float(stored["fetched"]),
            [
                Release(str(Version(version)), datetime.fromisoformat(uploaded), bool(yanked))
                for version, uploaded, yanked in stored["releases"]
            ],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(path: Path, found: list[Release]) -> None:
    """Best effort: a cache that can't be written costs a request next time, nothing else."""
    rows = [[release.version, release.uploaded.isoformat(), release.yanked] for release in found]
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({"fetched": time.time(), "releases": rows}), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)


def split_credentials(url: str) -> tuple[str, dict[str, str]]:
    """Credentials in a URL become a header: urllib doesn't send them, and messages mustn't show them."""
    parts = urllib.parse.urlsplit(url)
    user_info, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    token = base64.b64encode(urllib.parse.unquote(user_info).encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {token}"}


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
