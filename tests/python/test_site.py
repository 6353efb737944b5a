"""The documentation site: all pages are in its menu, its links lead somewhere, and it asks no other host."""

from __future__ import annotations

import functools
import gzip
import http.server
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "target" / "site"
MOST_BYTES = 150_000
"""Most bytes of a page with all that it loads before it is scrolled, text compressed as hosts of static sites do."""

sys.path.insert(0, str(ROOT / "scripts"))

import build_site  # noqa: E402


def in_menu(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        for value in entry.values():
            yield from in_menu(value) if isinstance(value, list) else [value]


def test_the_menu_has_every_page_once() -> None:
    menu = list(in_menu(tomllib.loads((ROOT / "site" / "zensical.toml").read_text())["project"]["nav"]))
    listed_elsewhere = {place for place in build_site.documents().values() if place.startswith("decisions/0")}
    assert sorted(menu) == sorted(set(build_site.documents().values()) - listed_elsewhere)


def test_every_document_can_become_a_page() -> None:
    for document in build_site.documents():
        build_site.rewritten((ROOT / document).read_text(), document)


def test_no_line_of_a_text_becomes_a_heading_of_the_site() -> None:
    for document in build_site.documents():
        text = re.sub(r"^```.*?^```$", "", (ROOT / document).read_text(), flags=re.M | re.S)
        assert not re.findall(r"^#+[^# \n].*", text, re.M), document


def test_links_lead_to_pages_and_other_files_become_text() -> None:
    text = "[a](../ARCHITECTURE.md#map) [`b`](../Makefile) `[c](x.md)` [d](load.md) [e](https://example.com/)"
    assert build_site.rewritten(text, "docs/inside.md") == (
        "[a](project/architecture.md#map) `b` `[c](x.md)` [d](load.md) [e](https://example.com/)"
    )
    assert build_site.rewritten("[a](docs/load.md)", "README.md") == "[a](../load.md)"
    assert re.fullmatch(
        r"\[!\[a\]\(images/inside\.webp\)\{ loading=lazy width=1144 height=\d{3,4} \}\]\(images/inside\.webp\)",
        build_site.rewritten("![a](images/inside.webp)", "docs/inside.md"),
    )
    assert build_site.rewritten("```console network\n$ [a](b.md)\n```", "README.md") == "```console\n$ [a](b.md)\n```"


def test_a_link_to_nothing_is_named() -> None:
    with pytest.raises(build_site.LinkError, match=re.escape("docs/inside.md has a link to absent.md")):
        build_site.rewritten("[a](absent.md)", "docs/inside.md")
    with pytest.raises(build_site.LinkError, match=re.escape("docs/run.schema.json is no WebP")):
        build_site.rewritten("![a](run.schema.json)", "docs/inside.md")


def test_the_lock_names_no_registry() -> None:
    lock = (ROOT / "site" / "requirements.txt").read_text()
    assert "://" not in lock
    assert all("==" in line for line in lock.splitlines() if line and line[0] not in " #")


class Compressed(http.server.SimpleHTTPRequestHandler):
    """Serves the site as static hosts do: text is compressed."""

    sent: dict[str, int]

    def __init__(self, *arguments: Any, sent: dict[str, int], **options: Any) -> None:
        self.sent = sent
        super().__init__(*arguments, directory=str(SITE), **options)

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        kind = self.guess_type(str(path))
        is_text = not kind.startswith("image/") or kind == "image/svg+xml"
        body = gzip.compress(path.read_bytes()) if is_text else path.read_bytes()
        self.sent[self.path] = len(body)
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if is_text:
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.fixture(scope="module")
def built() -> Path:
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "run", "--no-project", "--quiet", "--with-requirements", "site/requirements.txt"]
    done = subprocess.run(
        [*command, "python", "scripts/build_site.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return SITE


@pytest.fixture
def served(built: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """Yields the site's URL, and the bytes that were sent, by path."""
    sent: dict[str, int] = {}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Compressed, sent=sent)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", sent
        server.shutdown()


@pytest.mark.network
def test_links_and_pictures_of_the_pages_exist(built: Path) -> None:
    pages = [page for page in built.rglob("*.html") if not page.is_relative_to(built / "rustdoc")]
    assert len(pages) > 40
    anchors = {page: set(re.findall(r'\bid="?([^"\s>]+)', page.read_text())) for page in pages}
    broken = []
    for page in pages:
        here = "/" + page.relative_to(built).as_posix()
        for link in re.findall(r'\b(?:href|src)="?([^"\s>]+)', page.read_text()):
            parts = urlsplit(urljoin(here, link))
            if parts.scheme or parts.netloc or page.name == "404.html":
                continue
            target = built / unquote(parts.path).lstrip("/")
            target = target / "index.html" if target.is_dir() else target
            is_anchor = not parts.fragment or unquote(parts.fragment) in anchors.get(target, {parts.fragment})
            broken += [] if target.is_file() and is_anchor else [f"{here}: {link}"]
    assert not broken


@pytest.mark.network
@pytest.mark.parametrize("place", ["", "findings/", "reference/run/", "reference/run-commands/"])
def test_the_first_page_and_the_largest_ones_are_small(place: str, served: tuple[str, dict[str, int]]) -> None:
    from support.browser import Watched, chromium

    url, sent = served
    with chromium() as browser, Watched(browser) as watched:
        watched.page.goto(url + place)
        watched.page.wait_for_load_state("networkidle")
    assert place or any(path.endswith(".webp") for path in sent)
    assert sum(sent.values()) <= MOST_BYTES, sent


@pytest.mark.network
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("dark", [False, True])
def test_pages_ask_no_other_host_and_fit_the_screen(width: int, dark: bool, served: tuple[str, dict[str, int]]) -> None:
    from support.browser import Watched, chromium

    url, sent = served
    with chromium() as browser, Watched(browser, width=width, dark=dark) as watched:
        for place in ("", "tutorials/slow-tool/", "findings/", "servers/", "cli/", "reference/python/"):
            watched.page.goto(url + place)
            watched.page.wait_for_load_state("networkidle")
            assert watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
        scheme = watched.page.evaluate("document.body.getAttribute('data-md-color-scheme')")
        assert scheme == ("slate" if dark else "default")
    assert not watched.troubles
    assert not [asked for asked in watched.asked if not asked.startswith(url)]
    assert "/search.json" not in sent


@pytest.mark.network
def test_the_search_finds_a_finding(served: tuple[str, dict[str, int]]) -> None:
    from support.browser import Watched, chromium, expect

    url, sent = served
    with chromium() as browser, Watched(browser) as watched:
        watched.page.goto(url)
        watched.page.wait_for_load_state("networkidle")
        assert "/search.json" not in sent
        watched.page.keyboard.press("Control+k")
        expect(watched.page.locator("dialog input").first).to_be_focused()
        watched.page.keyboard.type("duplicate-request")
        expect(watched.page.locator("dialog a h2", has_text="duplicate-request").first).to_be_visible()
    assert "/search.json" in sent
