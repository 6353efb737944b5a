"""Releases: both forms of the Simple API, the cache, and uv's real index."""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from mcpace.lab.adapters.toml_file import load_adapter, load_all
from mcpace.lab.environments import releases
from mcpace.lab.environments.registries import cargo, pypi
from mcpace.lab.environments.registries.asking import query_tool
from mcpace.lab.environments.releases import (
    Exact,
    Newest,
    UnknownVersion,
    client_release,
    find_release,
    list_releases,
    parse_selection,
    releases_between,
)  # fmt: skip
from mcpace.lab.errors import ReleasesProblem, UsageProblem

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
    """A package index whose answers the test sets."""

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
    found = list_releases("Toy")
    assert [release.version for release in found] == ["1.9.0", "1.9.1", "1.10.0", "2.0.0rc1"]
    assert found[0].uploaded == datetime(2025, 2, 1, 11, tzinfo=UTC)
    assert [release.yanked for release in found] == [False, True, False, False]
    assert index.requests[0][0] == "/simple/toy/"


def test_newest_is_stable(index: type[Index]) -> None:
    assert find_release("toy", Newest()).version == "1.10.0"
    assert find_release("toy", Newest(1)).version == "1.10.0"
    with pytest.raises(UnknownVersion, match=r"toy has no release 2.x \(published: 1.9.0 to 1.10.0\)"):
        find_release("toy", Newest(2))


@pytest.mark.parametrize(
    ("asked", "near"), [("9.9.9", "1.10.0"), ("1.9.5", "1.9.0, 1.10.0"), ("0.1", "1.9.0"), ("1.11", "1.10.0")]
)
def test_an_unknown_release_names_its_neighbours(asked: str, near: str, index: type[Index]) -> None:
    with pytest.raises(UnknownVersion, match=rf"toy has no release {asked}; nearest: {near} \(published"):
        find_release("toy", parse_selection(asked))


def test_unknown_version_names_the_nearest(index: type[Index]) -> None:
    with pytest.raises(UnknownVersion, match=r"nearest: 1\.10\.0") as caught:
        find_release("toy", parse_selection("1.10.1"))
    assert caught.value.exit_code == 2
    assert find_release("toy", parse_selection("1.10")).version == "1.10.0"
    assert isinstance(parse_selection("1.10"), Exact)


def test_answers_are_kept_and_used_when_the_index_is_gone(index: type[Index]) -> None:
    first = list_releases("toy")
    assert list_releases("toy") == first
    assert len(index.requests) == 1
    index.status = 503
    said: list[str] = []
    assert list_releases("toy", max_age_s=0, say=said.append) == first
    assert len(said) == 1 and "answered 503" in said[0] and "going on with the list of" in said[0]


def test_a_damaged_cache_is_fetched_anew(index: type[Index], tmp_path: Path) -> None:
    list_releases("toy")
    (kept,) = (tmp_path / "releases").iterdir()
    kept.write_text('{"fetched": 1e12, "releases": [["1.0"')
    assert len(list_releases("toy")) == 4


def test_what_an_index_can_get_wrong(index: type[Index], monkeypatch: pytest.MonkeyPatch) -> None:
    index.body = json.dumps({"files": [{"filename": "toy-1.0.tar.gz"}]}).encode()
    with pytest.raises(ReleasesProblem, match="gives no upload times"):
        list_releases("toy")
    index.body = b"[]"
    with pytest.raises(ReleasesProblem, match="can't be understood"):
        list_releases("toy")
    index.body = b"x" * 100
    monkeypatch.setattr(pypi, "SIZE_LIMIT", 99)
    with pytest.raises(ReleasesProblem, match="larger than"):
        list_releases("toy")
    index.status = 404
    with pytest.raises(ReleasesProblem, match="has no package 'toy'"):
        list_releases("toy")


def test_an_unreachable_index_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPACE_CACHE", str(tmp_path))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://someone:secret@127.0.0.1:1/simple")
    with pytest.raises(ReleasesProblem, match=r"127\.0\.0\.1:1 could not be reached: .*refused") as caught:
        list_releases("toy")
    assert "secret" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_credentials_are_sent_and_not_written(
    index: type[Index], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = pypi.index_url().removeprefix("http://")
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://someone:s%40crt@{host}")
    list_releases("toy")
    assert index.requests[-1][1] == "Basic " + base64.b64encode(b"someone:s@crt").decode()
    assert all("crt" not in path.name + path.read_text() for path in (tmp_path / "releases").iterdir())


@pytest.mark.parametrize("elsewhere", [True, False])
def test_credentials_do_not_follow_a_redirect_to_another_host(
    index: type[Index], monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    there = pypi.index_url()

    class Moved(BaseHTTPRequestHandler):
        """Redirects every request to another place, or first to itself."""

        seen: ClassVar[list[str | None]] = []

        def do_GET(self) -> None:
            self.seen.append(self.headers.get("Authorization"))
            around = not elsewhere and len(self.seen) == 1
            self.send_response(302)
            self.send_header("Location", "/simple/toy/?again" if around else f"{there}/toy/")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Moved) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://someone:secret@127.0.0.1:{server.server_address[1]}/simple")
        try:
            assert list_releases("toy")
        finally:
            server.shutdown()
            thread.join()
    assert all(Moved.seen)
    assert len(Moved.seen) == (1 if elsewhere else 2)
    assert [credentials for _, credentials in index.requests] == [None]


def test_a_named_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "house=https://index.example/simple?a=b")
    assert pypi.index_url() == "https://index.example/simple?a=b"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://index.example/simple?a=b")
    assert pypi.index_url() == "https://index.example/simple?a=b"


NPM = """\
import json, sys
assert sys.argv[1:] == ["view", "@toys/toy", "time", "--json", "--loglevel=error"], sys.argv
print(json.dumps({"created": "2024-01-01T00:00:00Z", "modified": "2026-01-01T00:00:00Z",
  "1.10.0": "2025-03-01T02:00:00.000+02:00", "1.9.0": "2025-02-01T11:00:00Z", "2.0.0-beta.1": "2025-04-01T00:00:00Z",
  "0.0.0-nightly-2025": "2025-04-01T00:00:00Z"}))
"""
GO = """\
import sys
match sys.argv[1:]:
    case ["list", "-m", "-versions", "example.com/toy"]:
        print("example.com/toy v1.8.0 v1.9.0 v1.10.0 v2.0.0-pre.1")
    case ["list", "-m", "example.com/toy@v1.9.5"]:
        print("example.com/toy v1.9.5")
    case _:
        sys.exit("no matching versions")
"""
CARGO = """\
import json, os, pathlib, sys
assert sys.argv[1:] == ["info", "--quiet", "toys"], sys.argv
entries = [{"vers": "1.10.0", "yanked": False, "pubtime": "2025-03-01T00:00:00Z"}, {"vers": "1.9.0", "yanked": True}]
place = pathlib.Path(os.environ["CARGO_HOME"], "registry/index/one/.cache/to/ys/toys")
place.parent.mkdir(parents=True)
place.write_bytes(b"\\3\\2\\0\\0Unknown\\0" + b"".join(v["vers"].encode() + b"\\0" + json.dumps(v).encode() + b"\\0"
                  for v in entries))
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Returns a function that puts a stand-in for a package manager on PATH. The cache is empty."""
    monkeypatch.setenv("MCPACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))

    def stand_in(name: str, source: str) -> None:
        place = tmp_path / "bin" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!{sys.executable}\n{source}")
        place.chmod(0o755)
        monkeypatch.setenv("PATH", str(place.parent))

    return stand_in


Tools = Callable[[str, str], None]


def test_npm_tells_versions_and_times(tools: Tools) -> None:
    tools("npm", NPM)
    found = list_releases("@toys/toy", kind="npm")
    assert [release.version for release in found] == ["1.9.0", "1.10.0", "2.0.0-beta.1"]
    assert found[1].uploaded == datetime(2025, 3, 1, tzinfo=UTC)
    assert found[2].is_prerelease and find_release("@toys/toy", Newest(), kind="npm").version == "1.10.0"
    # As npm spells it, which is how it is installed.
    assert find_release("@toys/toy", parse_selection("2.0.0b1"), kind="npm").version == "2.0.0-beta.1"


def test_go_tells_versions_without_times(tools: Tools, tmp_path: Path) -> None:
    tools("go", GO)
    found = list_releases("example.com/toy", kind="go")
    assert [(release.version, release.uploaded) for release in found] == [
        ("1.8.0", None), ("1.9.0", None), ("1.10.0", None), ("2.0.0-pre.1", None),
    ]  # fmt: skip
    assert list_releases("example.com/toy", kind="go") == found
    assert len(list((tmp_path / "cache" / "releases").iterdir())) == 1


def test_cargo_s_copy_of_the_index_is_read(tools: Tools) -> None:
    tools("cargo", CARGO)
    found = list_releases("toys", kind="cargo")
    assert [(release.version, release.yanked) for release in found] == [("1.9.0", True), ("1.10.0", False)]
    assert found[1].uploaded == datetime(2025, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "place"), [("a", "1/a"), ("ab", "2/ab"), ("abc", "3/a/abc"), ("Serde", "se/rd/serde")]
)
def test_where_an_index_has_a_crate(name: str, place: str) -> None:
    assert cargo.index_path(name) == place


@pytest.mark.parametrize(
    ("kind", "source", "says"),
    [
        ("npm", "print('[]')", "what npm says of toys can't be understood"),
        ("npm", "print('{}')", "there are no releases of toys"),
        (
            "npm",
            "import sys; sys.exit('E404 not found')",
            "npm can't say which releases .*: E404 not found",
        ),
        ("go", "print('toys')", "there are no releases of toys"),
        ("cargo", "", "cargo keeps no copy of what its index says of toys"),
    ],
)
def test_what_a_package_manager_can_get_wrong(tools: Tools, kind: str, source: str, says: str) -> None:
    tools(kind, source)
    with pytest.raises(ReleasesProblem, match=says) as caught:
        list_releases("toys", kind=kind)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["npm", "go", "cargo"])
def test_a_missing_package_manager_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("MCPACE_CACHE", str(tmp_path))
    with pytest.raises(
        ReleasesProblem, match=f"for the command {kind} to say, which is missing: .*(rustup|golang|nodejs)"
    ) as caught:
        list_releases("toys", kind=kind)
    assert caught.value.exit_code == 3


ADAPTER = """
format = 1
name = "toy"
title = "toy"
[install]
kind = "go"
package = "example.com/toy"
[client]
command = ["{program}"]
transports = ["http"]
[[client.releases]]
versions = ">=1.9.3"
sources = ["client"]
"""


def test_a_module_s_release_that_its_proxy_does_not_list(tools: Tools, tmp_path: Path) -> None:
    tools("go", GO)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "adapter.toml").write_text(ADAPTER)
    adapter = load_adapter(tmp_path / "toy")
    assert client_release(adapter, parse_selection("1.9.5")).version == "1.9.5"
    with pytest.raises(UnknownVersion, match=r"toy has no release 1\.9\.6; nearest: 1\.9\.0"):
        client_release(adapter, parse_selection("1.9.6"))
    # The ends count, and of what lies between them what there is a client for.
    assert [release.version for release in releases_between(adapter, "1.8.0", "1.9.5")] == ["1.8.0", "1.9.5"]
    assert [release.version for release in releases_between(adapter, "2.0.0-pre.1", "1.9.5")] == [
        "1.9.5", "1.10.0", "2.0.0-pre.1",
    ]  # fmt: skip


SEVERAL = """\
import json, sys
print(json.dumps({"old-toy": {"1.0.0": "2025-01-01T00:00:00Z", "2.0.0": "2025-02-01T00:00:00Z"},
                  "toy": {"0.0.1": "2025-03-01T00:00:00Z", "1.0.0": "2025-03-01T00:00:00Z",
                          "2.0.0": "2025-04-01T00:00:00Z"}}[sys.argv[2]]))
"""


def test_each_package_has_the_releases_that_it_is_the_one_for(tools: Tools, tmp_path: Path) -> None:
    tools("npm", SEVERAL)
    (tmp_path / "toy").mkdir()
    text = ADAPTER.replace('"go"', '"npm"').replace("example.com/toy", "toy").replace(">=1.9.3", ">=2")
    old = '[[client.releases]]\nversions = ">=1,<2"\npackage = "old-toy"\nsources = ["client"]\n'
    (tmp_path / "toy" / "adapter.toml").write_text(text + old)
    found = releases.client_releases(load_adapter(tmp_path / "toy"))
    assert [(release.version, release.uploaded and release.uploaded.month) for release in found] == [
        ("0.0.1", 3), ("1.0.0", 1), ("2.0.0", 4),
    ]  # fmt: skip


@pytest.mark.network
@pytest.mark.parametrize(
    ("kind", "package", "version", "day"),
    [
        ("npm", "@modelcontextprotocol/sdk", "1.23.0", "2025-11-26"),
        ("cargo", "rmcp", "0.9.0", "2025-11-17"),
        ("go", "github.com/modelcontextprotocol/go-sdk", "1.2.0", None),
    ],
)
def test_the_real_registries(kind: str, package: str, version: str, day: str | None) -> None:
    """Uses the configuration of this machine's package managers."""
    found = {release.version: release for release in list_releases(package, max_age_s=0, kind=kind)}
    uploaded = found[version].uploaded
    assert (uploaded and uploaded.date().isoformat()) == day


@pytest.mark.network
def test_the_real_index() -> None:
    """Uses this machine's uv configuration."""
    found = list_releases("mcp", max_age_s=0)
    by_version = {release.version: release for release in found}
    assert by_version["1.12.1"].uploaded.date().isoformat() == "2025-07-22"
    assert not by_version["1.12.1"].yanked
    assert by_version["2.0.0rc1"].is_prerelease
    numbers = [release.parsed_version for release in found]
    assert numbers == sorted(numbers)


@pytest.mark.network
def test_between_in_both_directions() -> None:
    python = load_all()["python"]
    found = [release.version for release in releases_between(python, "1.11.0", "1.13.0")]
    assert found == ["1.11.0", "1.12.0", "1.12.1", "1.12.2", "1.12.3", "1.12.4", "1.13.0"]
    assert [release.version for release in releases_between(python, "1.13.0", "1.11.0")] == found
    assert [release.version for release in releases_between(python, "2.0.0rc1", "2.0.0")] == ["2.0.0rc1", "2.0.0"]
    with pytest.raises(UsageProblem, match="give two releases"):
        releases_between(python, "1.12.0", "1.12")
    with pytest.raises(UnknownVersion):
        releases_between(python, "1.11.0", "1.12.9")


@pytest.mark.parametrize(
    ("tool", "left", "words"), [("go", "go.mod", ["list", "-m"]), ("npm", "package.json", ["prefix"])]
)
def test_what_lies_above_our_folder_is_not_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, left: str, words: list[str]
) -> None:
    (tmp_path / left).write_text("{ this is nobody's" if tool == "go" else "{}")
    (tmp_path / "go.work").write_text("nor is this")
    monkeypatch.setenv("MCPACE_CACHE", str(tmp_path / "below" / "cache"))
    said = query_tool([tool, *words], "toy").strip()
    assert said in ("neutral", str(tmp_path / "below" / "cache" / "neutral"))
