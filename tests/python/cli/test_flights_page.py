"""The servers behind the flight recorder in ``mcpace ui``."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from mcpace.lab.compare.comparison import DEFAULT_TOLERANCE, run_of
from mcpace.lab.errors import UsageProblem
from mcpace.lab.hosts.flights import Flight, make_flight
from mcpace.ui import flights as flights_module
from mcpace.ui.flights import Flights
from mcpace.ui.folder import Folder, Missing
from mcpace.ui.server import Server
from support.browser import Watched, chromium
from support.wrapped_host import Host, command_line, configure, flight, hosting, prepare, root, wrap

EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return prepare(tmp_path)


@pytest.fixture
def host(place: Path) -> Iterator[Host]:
    """A host that uses a wrapped server."""
    file = configure(place)
    assert wrap(place, file).code == 0
    with hosting(command_line(file)) as host:
        yield host


@contextmanager
def served(place: Path) -> Iterator[Server]:
    (place / "runs").mkdir()
    runs = Folder(place / "runs", partial(run_of, tolerance=DEFAULT_TOLERANCE), Flights(root(place)))
    with Server(runs, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()


def test_a_server_is_seen_while_its_host_uses_it_and_afterwards(
    place: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flights_module, "SHORTEST_WAIT_S", 0.0)
    monkeypatch.setattr(flights_module, "WAIT_FACTOR", 0.0)
    flights = Flights(root(place))
    host.call("fail")
    [recording] = flight(place).recordings()
    [entry] = flights.entries()
    assert (entry.state, entry.id) == ("live", f"{recording.parent.name}/{recording.name}")
    assert entry.head is not None
    assert (entry.head.subjects, entry.head.targets) == ("calculator", str(place / "mcp.json"))
    host.end()
    [entry] = flights.entries()
    assert entry.state == "done"
    page = flights.page(entry.id)
    assert page is not None
    assert any("tools/call" in cell for table in page.tables for row in table.rows for cell in row)


def test_a_recording_is_not_explained_again_at_once(place: Path, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights_module, "SHORTEST_WAIT_S", 3_600.0)
    flights = Flights(root(place))
    [first] = flights.entries()
    for _ in range(3):
        host.call("fail")
    host.end()
    [entry] = flights.entries()
    assert entry.head == first.head
    [fresh] = Flights(root(place)).entries()
    assert fresh.head != first.head


@pytest.mark.parametrize("name", ["", "../server.json", "x/y", "/etc/passwd", "%2e%2e"])
def test_only_listed_recordings_are_opened(place: Path, host: Host, name: str) -> None:
    folder = Folder(place, partial(run_of, tolerance=DEFAULT_TOLERANCE), Flights(root(place)))
    with pytest.raises(Missing):
        folder.flight(name)


def test_hostile_folders_are_shown_as_text_or_left_out(place: Path) -> None:
    base = root(place)
    make_flight(Flight(base / "evil", EVIL, EVIL))
    (base / "evil" / "20260101T000000Z-1.jsonl.zst").write_bytes(b"no recording")
    for name, text in {"list": "[]", "number": "1", "deep": "[" * 50_000, "empty": ""}.items():
        (base / name).mkdir()
        (base / name / "server.json").write_text(text)
        (base / name / "20260101T000000Z-1.jsonl.zst").write_bytes(b"x")
    (base / "link").symlink_to(base / "evil")
    [entry] = Flights(base).entries()
    assert (entry.state, entry.head) == ("unreadable", None)
    assert "\x1b" not in entry.reason
    with pytest.raises(UsageProblem):
        Flights(base).page(entry.id)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_the_page_shows_servers_of_hosts(
    place: Path, host: Host, browser: Browser, width: int, dark: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flights_module, "SHORTEST_WAIT_S", 0.0)
    monkeypatch.setattr(flights_module, "WAIT_FACTOR", 0.0)
    host.call("fail")
    with served(place) as server, Watched(browser, width=width, dark=dark) as watched:
        page = watched.open(server.url)
        row = page.locator("#flights li")
        expect(row).to_contain_text("in use")
        row.get_by_role("link", name="calculator").click()
        expect(page.locator("body")).to_contain_text("tools/call")
        # The page follows the host without a click.
        host.call("add", a=1, b=2)
        host.call("fail")
        expect(page.locator("body")).to_contain_text("add")
        host.end()
        page.goto(f"http://127.0.0.1:{server.server_port}/#/")
        expect(page.locator("#flights li")).to_contain_text("ended")
        assert not watched.troubles


def test_the_listing_has_the_recordings(place: Path, host: Host) -> None:
    folder = Folder(place, partial(run_of, tolerance=DEFAULT_TOLERANCE), Flights(root(place)))
    [entry] = folder.listing().flights
    assert json.loads(folder.flight(entry.id).model_dump_json())["head"]["subjects"] == "calculator"
