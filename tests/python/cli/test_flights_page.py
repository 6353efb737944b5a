"""The servers behind the flight recorder in ``mcpace ui``."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from mcpace.lab.compare.comparison import run_of
from mcpace.lab.defaults import TOLERANCE
from mcpace.lab.errors import UsageProblem
from mcpace.lab.hosts.flights import Flight, make_flight
from mcpace.ui import flights as flights_module
from mcpace.ui.flights import Flights
from mcpace.ui.folder import Folder, Missing
from mcpace.ui.server import Server
from support.browser import Watched, chromium
from support.commands import LIMIT_S
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
    runs = Folder(place / "runs", partial(run_of, tolerance=TOLERANCE), Flights(root(place)))
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
    folder = Folder(place, partial(run_of, tolerance=TOLERANCE), Flights(root(place)))
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
    folder = Folder(place, partial(run_of, tolerance=TOLERANCE), Flights(root(place)))
    [entry] = folder.listing().flights
    assert json.loads(folder.flight(entry.id).model_dump_json())["head"]["subjects"] == "calculator"


def test_others_are_served_while_a_recording_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The explanation of one recording is held until the others were served; both are real afterwards."""
    for name in ("slow", "fast"):
        make_flight(Flight(tmp_path / name, name, "mcp.json"))
        (tmp_path / name / "1.jsonl.zst").write_bytes(b"no recording")
    is_begun, may_end = threading.Event(), threading.Event()
    explained: list[str] = []
    explain = flights_module._explain

    def held(flight: Flight, file: Path, stamp: tuple[int, int]) -> flights_module._Explained:
        explained.append(flight.server)
        if flight.server == "slow":
            is_begun.set()
            assert may_end.wait(LIMIT_S)
        return explain(flight, file, stamp)

    monkeypatch.setattr(flights_module, "_explain", held)
    monkeypatch.setattr(flights_module, "SHORTEST_WAIT_S", 0.0)
    monkeypatch.setattr(flights_module, "WAIT_FACTOR", 0.0)
    flights = Flights(tmp_path)

    def reason(name: str) -> str:
        with pytest.raises(UsageProblem) as refused:
            flights.page(f"{name}/1.jsonl.zst")
        return str(refused.value)

    with ThreadPoolExecutor(3) as pool:
        first = [pool.submit(reason, "slow") for _ in range(2)]
        assert is_begun.wait(LIMIT_S)
        assert "recording" in pool.submit(reason, "fast").result(LIMIT_S)
        may_end.set()
        assert "recording" in first[0].result(LIMIT_S) == first[1].result(LIMIT_S)
        assert explained == ["slow", "fast"]
        # A recording that grows is served as it was, while it is explained again.
        is_begun.clear()
        may_end.clear()
        (tmp_path / "slow" / "1.jsonl.zst").write_bytes(b"no recording yet")
        again = pool.submit(reason, "slow")
        assert is_begun.wait(LIMIT_S)
        assert pool.submit(reason, "slow").result(LIMIT_S) == first[0].result()
        may_end.set()
        again.result(LIMIT_S)
    assert explained == ["slow", "fast", "slow"]
