"""Releases: both forms of the Simple API, the cache, and the index that uv is really configured with."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from mcpace.lab.adapters import load_all
from mcpace.lab.errors import ReleasesProblem, UsageProblem
from mcpace.lab.registries import pypi
from mcpace.lab.releases import Exact, Newest, UnknownVersion, between, find, parse_selection, published

FILES = [
    {"filename": "toy-1.10.0-py3-none-any.whl", "upload-time": "2025-03-01T00:00:00Z"},
    {"filename": "toy-1.9.0-py3-none-any.whl", "upload-time": "2025-02-01T12:00:00.5Z", "yanked": False},
    {"filename": "toy-1.9.0.tar.gz", "upload-time": "2025-02-01T11:00:00Z", "yanked": "a reason"},
    {"filename": "toy-1.9.1-py3-none-any.whl", "upload-time": "2025-02-02T00:00:00Z", "yanked": "a reason"},
    {"filename": "toy-2.0.0rc1-py3-none-any.whl", "upload-time": "2025-04-01T00:00:00Z"},
    {"filename": "toy-0.1.exe", "upload-time": "2020-01-01T00:00:00Z"},
    {"filename": "toy-0.2.tar.gz"},
]
HTML = "".join(
    f'<a href="../../f/{file["filename"]}#sha256=0"'
    + (f' data-upload-time="{file["upload-time"]}"' if "upload-time" in file else "")
    + (f' data-yanked="{file["yanked"]}"' if file.get("yanked") else "")
    + f">{file['filename']}</a><br/>"
    for file in FILES
)


class Index(BaseHTTPRequestHandler):
    """A package index that answers as the test says."""

    body: ClassVar[bytes]
    kind: ClassVar[str]
    status: ClassVar[int]
    requests: ClassVar[list[tuple[str, str | None]]]

    def do_GET(self) -> None:
        self.requests.append((self.path, self.headers.get("Authorization")))
        self.send_response(self.status)
        self.send_header("Content-Type", self.kind)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *arguments: object) -> None: ...


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Index]]:
    Index.body, Index.kind = json.dumps({"files": FILES}).encode(), "application/vnd.pypi.simple.v1+json"
    Index.status, Index.requests = 200, []
    with HTTPServer(("127.0.0.1", 0), Index) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("MCPACE_CACHE", str(tmp_path))
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{server.server_address[1]}/simple")
        yield Index
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("html", [False, True])
def test_both_forms_of_the_index(index: type[Index], html: bool) -> None:
    if html:
        index.body, index.kind = HTML.encode(), "text/html"
    found = published("Toy")
    assert [release.version for release in found] == ["1.9.0", "1.9.1", "1.10.0", "2.0.0rc1"]
    assert found[0].uploaded == datetime(2025, 2, 1, 11, tzinfo=UTC)
    assert [release.yanked for release in found] == [False, True, False, False]
    assert index.requests[0][0] == "/simple/toy/"


def test_newest_is_stable(index: type[Index]) -> None:
    assert find("toy", Newest()).version == "1.10.0"
    assert find("toy", Newest(1)).version == "1.10.0"
    with pytest.raises(UnknownVersion, match=r"toy has no release 2.x \(published: 1.9.0 to 1.10.0\)"):
        find("toy", Newest(2))


def test_unknown_version_names_the_nearest(index: type[Index]) -> None:
    with pytest.raises(UnknownVersion, match=r"nearest: 1\.10\.0") as caught:
        find("toy", parse_selection("1.10.1"))
    assert caught.value.exit_code == 2
    assert find("toy", parse_selection("1.10")).version == "1.10.0"
    assert isinstance(parse_selection("1.10"), Exact)


def test_answers_are_kept_and_used_when_the_index_is_gone(index: type[Index]) -> None:
    first = published("toy")
    assert published("toy") == first
    assert len(index.requests) == 1
    index.status = 503
    said: list[str] = []
    assert published("toy", max_age_s=0, progress=said.append) == first
    assert len(said) == 1 and "answered 503" in said[0] and "going on with the list of" in said[0]


def test_a_damaged_cache_is_fetched_anew(index: type[Index], tmp_path: Path) -> None:
    published("toy")
    (kept,) = (tmp_path / "releases").iterdir()
    kept.write_text('{"fetched": 1e12, "releases": [["1.0"')
    assert len(published("toy")) == 4


def test_what_an_index_can_get_wrong(index: type[Index], monkeypatch: pytest.MonkeyPatch) -> None:
    index.body = json.dumps({"files": [{"filename": "toy-1.0.tar.gz"}]}).encode()
    with pytest.raises(ReleasesProblem, match="gives no upload times"):
        published("toy")
    index.body = b"[]"
    with pytest.raises(ReleasesProblem, match="can't be understood"):
        published("toy")
    index.body = b"x" * 100
    monkeypatch.setattr(pypi, "SIZE_LIMIT", 99)
    with pytest.raises(ReleasesProblem, match="larger than"):
        published("toy")
    index.status = 404
    with pytest.raises(ReleasesProblem, match="has no package 'toy'"):
        published("toy")


def test_an_unreachable_index_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPACE_CACHE", str(tmp_path))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://someone:secret@127.0.0.1:1/simple")
    with pytest.raises(ReleasesProblem, match=r"127\.0\.0\.1:1 could not be reached: .*refused") as caught:
        published("toy")
    assert "secret" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_credentials_are_sent_and_not_written(
    index: type[Index], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = pypi.index_url().removeprefix("http://")
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://someone:s%40crt@{host}")
    published("toy")
    assert index.requests[-1][1] == "Basic " + base64.b64encode(b"someone:s@crt").decode()
    assert all("crt" not in path.name + path.read_text() for path in (tmp_path / "releases").iterdir())


def test_a_named_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "house=https://index.example/simple?a=b")
    assert pypi.index_url() == "https://index.example/simple?a=b"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://index.example/simple?a=b")
    assert pypi.index_url() == "https://index.example/simple?a=b"


@pytest.mark.network
def test_the_real_index() -> None:
    """The index as this machine's uv is configured."""
    found = published("mcp", max_age_s=0)
    by_version = {release.version: release for release in found}
    assert by_version["1.12.1"].uploaded.date().isoformat() == "2025-07-22"
    assert not by_version["1.12.1"].yanked
    assert by_version["2.0.0rc1"].prerelease
    numbers = [release.number for release in found]
    assert numbers == sorted(numbers)


@pytest.mark.network
def test_between_in_both_directions() -> None:
    python = load_all()["python"]
    found = [release.version for release in between(python, "1.11.0", "1.13.0")]
    assert found == ["1.11.0", "1.12.0", "1.12.1", "1.12.2", "1.12.3", "1.12.4", "1.13.0"]
    assert [release.version for release in between(python, "1.13.0", "1.11.0")] == found
    assert [release.version for release in between(python, "2.0.0rc1", "2.0.0")] == ["2.0.0rc1", "2.0.0"]
    with pytest.raises(UsageProblem, match="give two releases"):
        between(python, "1.12.0", "1.12")
    with pytest.raises(UnknownVersion):
        between(python, "1.11.0", "1.12.9")
