"""Releases of Python packages, read from the package index of uv's configuration.

The index is read through the Simple API: PEP 691 with the upload times of PEP 700, or the HTML form where a mirror
gives upload times in `data-upload-time`.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from typing import Any

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from mcpace.lab.environments.registries.release import Release, parse_time
from mcpace.lab.errors import LabError, ReleasesProblem
from mcpace.lab.paths import find_uv
from mcpace.lab.processes.child_processes import run_child

ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
TIMEOUT_S = 30.0
SIZE_LIMIT = 64 * 1024 * 1024


class Pypi:
    """The Simple API."""

    def index_address(self) -> str:
        return index_url()

    def listed_releases(self, package: str, where: str) -> list[Release]:
        return fetch_releases(canonicalize_name(package), where)

    def find_unlisted(self, package: str, number: Version) -> Release | None:
        """Returns `None`: the index lists all releases."""
        return None


def index_url() -> str:
    """URL of the package index in uv's configuration for this user: environment or uv.toml, else pip's variable.

    A uv.toml or pyproject.toml of the current folder is ignored, since the folder may be a stranger's. Resolving no
    requirements makes uv print its index without using the network. uv reads no pip configuration, so PIP_INDEX_URL
    applies only where uv prints no index.
    """
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if url := os.environ.get(variable, ""):
            # UV_DEFAULT_INDEX may name its index: name=url.
            return url.partition("=")[2] if "=" in url.partition("://")[0] else url
    try:
        command = [str(find_uv()), "pip", "compile", "-", "--emit-index-url", "--no-deps", "--python", sys.executable]
        done = run_child(command, TIMEOUT_S)
        for line in done.stdout.splitlines():
            if line.startswith("--index-url "):
                return line.removeprefix("--index-url ").strip()
        reason = last_line(done.stderr)
    except LabError as error:
        reason = str(error)
    if pip_url := os.environ.get("PIP_INDEX_URL"):
        return pip_url
    raise ReleasesProblem(f"no package index is configured ({reason}): set UV_DEFAULT_INDEX")


def fetch_releases(package: str, index: str) -> list[Release]:
    url, headers = split_credentials(f"{index.rstrip('/')}/{package}/")
    host = urllib.parse.urlsplit(url).netloc
    request = urllib.request.Request(url, headers={"Accept": ACCEPT, **headers})
    try:
        with urllib.request.build_opener(_CarefulRedirects).open(request, timeout=TIMEOUT_S) as reply:
            body = read_limited(reply)
            content_type = reply.headers.get_content_type()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise ReleasesProblem(f"the package index at {host} has no package {package!r}") from None
        raise ReleasesProblem(f"the package index at {host} answered {error.code} for {package!r}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ReleasesProblem(
            f"the package index at {host} could not be reached: {reason}; check the network, or set UV_DEFAULT_INDEX"
        ) from error
    files = json_files(body) if content_type.endswith("json") else html_files(body)
    found = group_files(files)
    if not found:
        raise ReleasesProblem(
            f"the package index at {host} gives no upload times for {package!r}: old releases can't be installed "
            "as of their own time; set UV_DEFAULT_INDEX to an index that has them"
        )
    return found


class _CarefulRedirects(urllib.request.HTTPRedirectHandler):
    """Redirect handler that removes credentials when another origin follows, which urllib doesn't."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and _url_origin(req.full_url) != _url_origin(following.full_url):
            following.remove_header("Authorization")
        return following


def _url_origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def read_limited(reply: Any) -> bytes:
    """Reads the whole body with a size limit and a deadline. The socket's own time-out applies to single reads."""
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
    """Parses the JSON form (PEP 691), where `yanked` is a boolean or a reason."""
    try:
        entries = json.loads(body)["files"]
        return [
            File(entry["filename"], entry.get("upload-time"), entry.get("yanked", False) is not False)
            for entry in entries
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReleasesProblem(f"the package index's answer can't be understood: {error!r}") from error


def html_files(body: bytes) -> list[File]:
    """Parses the HTML form (PEP 503), with the upload time in an attribute."""
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


def group_files(files: list[File]) -> list[Release]:
    """Groups files by release. Leaves out files without an upload time, and all but wheels and sdists."""
    uploads: dict[Version, list[tuple[datetime, bool]]] = {}
    for file in files:
        version = version_of(file.name)
        if version is None or file.uploaded is None:
            continue
        try:
            uploaded = parse_time(file.uploaded)
        except ValueError:
            continue
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


def split_credentials(url: str) -> tuple[str, dict[str, str]]:
    """Moves a URL's credentials to a header: urllib doesn't send them, and messages mustn't show them."""
    parts = urllib.parse.urlsplit(url)
    user_info, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    token = base64.b64encode(urllib.parse.unquote(user_info).encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {token}"}


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
