"""The command ``mcpace ui``: access control, the list of runs, the page in a browser, and the journal."""

from __future__ import annotations

import http.client
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from mcpace.lab import journal
from mcpace.lab.compare.comparison import run_of
from mcpace.lab.defaults import TOLERANCE
from mcpace.lab.progress import Silent
from mcpace.report.model import run as run_module
from mcpace.report.model.load import LoadSecond
from mcpace.report.model.run import Run
from mcpace.ui import folder as folder_module
from mcpace.ui import opening
from mcpace.ui.folder import Folder, Missing
from mcpace.ui.live import Journal
from mcpace.ui.opening import has_browser
from mcpace.ui.server import MOST_AT_ONCE, Server
from support.browser import Watched, chromium
from support.commands import COMMAND, end, line, run, start_command

COMPARED = partial(run_of, tolerance=TOLERANCE)

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    place = tmp_path / "runs"
    place.mkdir()
    for name in ("clients", "partial", "load", "hostile"):
        shutil.copy(RUNS / f"{name}.json", place)
    return place


@contextmanager
def served(runs: Path) -> Iterator[Server]:
    with Server(Folder(runs, COMPARED), 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Makes a request with the right token and host, unless given otherwise. Leaves out empty headers."""
    given = {"Host": f"127.0.0.1:{server.server_port}", "x-mcpace-token": server.token, **headers}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in given.items():
        if value:
            connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def told(server: Server, path: str) -> Any:
    status, _, body = ask(server, path)
    assert status == 200, body
    return json.loads(body)


# --- who is answered ---


def test_only_its_own_page_with_the_token_is_answered(runs: Path) -> None:
    with served(runs) as server:
        own = f"http://127.0.0.1:{server.server_port}"
        assert ask(server, "/api/runs")[0] == 200
        assert ask(server, "/api/runs", Origin=own)[0] == 200
        assert ask(server, "/api/runs", Host=f"localhost:{server.server_port}")[0] == 200
        refused = [
            ({"x-mcpace-token": ""}, 401),
            ({"x-mcpace-token": "x" * len(server.token)}, 401),
            ({"x-mcpace-token": server.token[:-1]}, 401),
            ({"Host": "evil.example"}, 403),
            ({"Host": ""}, 403),
            ({"Host": f"127.0.0.1:{server.server_port + 1}"}, 403),
            ({"Host": f"evil.example:{server.server_port}"}, 403),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": f"https://127.0.0.1:{server.server_port}"}, 403),
            ({"Sec_Fetch_Site": "cross-site"}, 403),
            ({"Sec_Fetch_Site": "same-site"}, 403),
        ]
        for headers, status in refused:
            for path in ("/api/runs", "/api/run?id=clients.json"):
                got, _, body = ask(server, path, **headers)
                assert got == status, headers
                assert b"clients" not in body
        assert ask(server, "/", Host="evil.example")[0] == 403


def test_the_shell_has_nothing_of_the_runs_and_the_token_is_nowhere_in_it(runs: Path) -> None:
    with served(runs) as server:
        status, headers, body = ask(server, "/", **{"x-mcpace-token": ""})
        assert status == 200
        assert server.token.encode() not in body
        assert b"python@1.12.1" not in body
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"] == "frame-ancestors 'none'"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "set-cookie" not in headers


def test_it_reads_only_and_listens_on_loopback_only(runs: Path) -> None:
    with served(runs) as server:
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
            assert ask(server, "/api/runs", method)[0] == 501
        assert server.server_address[0] == "127.0.0.1"
        assert len({Server(Folder(runs, COMPARED), 0).token for _ in range(3)}) == 3


@pytest.mark.parametrize(
    "name",
    ["../secret.json", "..%2fsecret.json", "/etc/passwd", "sub/run.json", ".hidden.json", "", "clients", "a%00b"],
)
def test_no_name_leads_out_of_the_folder(name: str, runs: Path) -> None:
    for place in (runs.parent / "secret.json", runs / ".hidden.json"):
        shutil.copy(RUNS / "measure.json", place)
    (runs / "sub").mkdir()
    shutil.copy(RUNS / "measure.json", runs / "sub" / "run.json")
    with served(runs) as server:
        for path in (f"/api/run?id={name}", f"/api/live?id={name}", f"/api/compare?first={name}&second=load.json"):
            status, _, body = ask(server, path)
            assert status == 404
            assert b"error" in body
        assert ask(server, f"/{name}")[0] in (200, 404)
        assert b"mcpace-client" not in ask(server, f"/{name}")[2]


def test_silent_visitors_keep_nobody_out(runs: Path) -> None:
    with served(runs) as server:
        held = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(2 * MOST_AT_ONCE)]
        for one in held[MOST_AT_ONCE:]:
            one.sendall(b"GET / HTT")
        for _ in range(3):
            assert ask(server, "/api/runs")[0] == 200
        for one in held:
            one.close()


def test_who_asks_and_reads_nothing_keeps_nobody_out(runs: Path) -> None:
    with served(runs) as server:
        held = [socket.socket() for _ in range(MOST_AT_ONCE)]
        for one in held:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            one.connect(("127.0.0.1", server.server_port))
            # More than any buffer between the two takes.
            one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.server_port * 200)
        for _ in range(3):
            assert ask(server, "/api/runs")[0] == 200
        for one in held:
            one.close()


def test_what_is_no_address_is_refused_and_answered(runs: Path) -> None:
    with served(runs) as server:
        for path in ("http://[/", "/api/run?" + "&".join(f"a{number}=1" for number in range(9))):
            assert ask(server, path)[0] == 400
            assert ask(server, path, Host="evil.example")[0] == 403


def test_the_page_may_be_come_to_from_a_file_and_nothing_else(runs: Path) -> None:
    with served(runs) as server:
        come = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
        assert ask(server, "/", **come)[0] == 200
        assert ask(server, "/api/runs", **come)[0] == 403
        assert ask(server, "/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403


# --- the folder ---


def test_the_newest_come_first_and_what_is_no_run_is_passed_over(runs: Path) -> None:
    (runs / "package.json").write_text('{"name": "x"}')
    (runs / "broken.json").write_text('{"schema": "mcpace.run/1", "kind": "clients"')
    (runs / "future.json").write_text('{"schema": "mcpace.run/9", "kind": "clients"}')
    (runs / "notes.txt").write_text("mcpace.run/1")
    (runs / "folder.json").mkdir()
    for age, name in enumerate(("load", "clients", "partial", "hostile")):
        os.utime(runs / f"{name}.json", (1_000_000 - age, 1_000_000 - age))
    listed = Folder(runs, COMPARED).listing()
    assert [entry.id for entry in listed.entries if entry.state == "done"] == [
        "load.json", "clients.json", "partial.json", "hostile.json",
    ]  # fmt: skip
    unreadable = {entry.id: entry.reason for entry in listed.entries if entry.state == "unreadable"}
    assert set(unreadable) == {"broken.json", "future.json"}
    assert "update mcpace" in unreadable["future.json"]
    heads = {entry.id: entry.head for entry in listed.entries if entry.head}
    assert heads["partial.json"].partial
    assert "python 1.12.1" in heads["clients.json"].verdict[0]


def test_a_run_that_changes_is_read_anew_and_one_that_goes_is_missed(runs: Path) -> None:
    found = Folder(runs, COMPARED)
    assert len(found.listing().entries) == 4
    changed = Run.load(runs / "load.json")
    changed.partial = True
    (runs / "load.json").write_text(changed.to_json())
    (runs / "clients.json").unlink()
    entries = {entry.id: entry.head for entry in found.listing().entries}
    assert set(entries) == {"load.json", "partial.json", "hostile.json"}
    assert entries["load.json"] and entries["load.json"].partial
    with pytest.raises(Missing):
        found.page("clients.json")


def test_a_huge_file_is_not_read(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "MOST_BYTES", 1000)
    with served(runs) as server:
        status, _, body = ask(server, "/api/run?id=clients.json")
        assert status == 422
        assert b"larger than" in body
    assert all(entry.state == "unreadable" for entry in Folder(runs, COMPARED).listing().entries)


def test_two_runs_are_compared(runs: Path) -> None:
    with served(runs) as server:
        page = told(server, "/api/compare?first=clients.json&second=partial.json")
    assert page["head"]["kind"] == "compare"
    assert page["comparison"]["first"].startswith("clients.json: clients, ")
    assert page["comparison"]["second"].startswith("partial.json: clients, ")
    assert page["comparison"]["rows"]
    assert any(row["first_s"] and row["second_s"] for row in page["comparison"]["rows"])


def hostile(change: dict[str, Any]) -> str:
    """A run as JSON with one part changed. ``machine.cores`` names a part."""
    told = json.loads((RUNS / "clients.json").read_text())
    for place, value in change.items():
        *path, last = place.split(".")
        inner = told
        for name in path:
            inner = inner[int(name)] if name.isdigit() else inner[name]
        inner[last] = value
    return json.dumps(told)


FACTOR = {"code": "json", "verdict": "slower"}
GATE = {"tolerance": 0.1, "attempts": [{}], "red": True, "reasons": ["of-a-later-release"]}
HOSTILE = {
    "memory.json": hostile({"machine.memory_bytes": 10**400}),
    "factor.json": hostile({"kind": "explain", "factors": [FACTOR]}),
    "reason.json": hostile({"kind": "gate", "comparison": GATE}),
    "version.json": hostile({"cases.0.subject.version": "1" * 5000}),
    "context.json": hostile({"cases.0.findings": [
        {"code": "duplicate-request", "severity": "high", "confidence": "high", "cost_s": 1, "calls": 1, "of_calls": 1,
         "context": {"extra_requests": 10**400, "gap_ns": 10**400}}]}),
    "deep.json": hostile({"options": {"x": json.loads("[" * 150 + "]" * 150)}}),
}  # fmt: skip


def test_whatever_one_run_is_the_others_are_listed(runs: Path) -> None:
    before = len(Folder(runs, COMPARED).listing().entries)
    for name, text in HOSTILE.items():
        (runs / name).write_text(text)
    other = os.fsencode(runs) + b"/not-\xff-text.json"
    shutil.copy(RUNS / "measure.json", other)
    with served(runs) as server:
        entries = {entry["id"]: entry for entry in told(server, "/api/runs")["entries"]}
        assert len(entries) == before + len(HOSTILE) + 1
        assert entries["clients.json"]["state"] == "done"
        assert entries["not-\\udcff-text.json"]["state"] == "done"
        assert told(server, "/api/run?id=not-%5Cudcff-text.json")["head"]["kind"] == "measure"
        for name in HOSTILE:
            assert ask(server, f"/api/run?id={name}")[0] in (200, 422)
            assert ask(server, f"/api/compare?first={name}&second=clients.json")[0] in (200, 422)


def test_what_nobody_foresaw_is_said_and_ends_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head, page_of = folder_module.head, folder_module.page_of

    def unless_load(made: Any) -> Any:
        def shown(told: Run) -> Any:
            assert told.kind != "load", "of \x1b[31mnobody"
            return made(told)

        return shown

    monkeypatch.setattr(folder_module, "head", unless_load(head))
    monkeypatch.setattr(folder_module, "page_of", unless_load(page_of))
    with served(runs) as server:
        entries = {entry["id"]: entry for entry in told(server, "/api/runs")["entries"]}
        assert {name: entry["state"] for name, entry in entries.items()} == {
            "load.json": "unreadable", "clients.json": "done", "partial.json": "done", "hostile.json": "done",
        }  # fmt: skip
        why = "mcpace can't show this run (AssertionError: of [31mnobody)"
        assert entries["load.json"]["reason"].startswith(why.removesuffix(")"))
        status, _, body = ask(server, "/api/run?id=load.json")
        assert (status, json.loads(body)["error"][: len(why) - 1]) == (422, why.removesuffix(")"))


# --- the journal ---


def second(at_s: float) -> LoadSecond:
    return LoadSecond(at_s=at_s, warm_up=False, users=2, intended=10, ok=9, errors=1, p50_s=0.001, p99_s=0.002)


class Deaf:
    """A load's watcher that ignores everything."""

    def preparing(self, what: str) -> None: ...
    def note(self, text: str) -> None: ...
    def begin(self, planned_s: float) -> None: ...
    def second(self, second: LoadSecond) -> None: ...


def test_what_is_told_is_read(tmp_path: Path) -> None:
    out = tmp_path / "new" / "run.json"
    with journal.record_progress(Silent(), out, "clients", f"a at b {EVIL}") as progress:
        progress.preparing("things")
        assert (found := Journal(journal.journal_path(out)).look())
        assert (found.step, found.done, found.steps, found.ended) == ("preparing things", 0, None, False)
        progress.begin(4)
        progress.step(f"one {EVIL}")
        progress.step("two")
        progress.note(EVIL)
        progress.sample("b · call", "a", 0.25)
        progress.sample("b · call", "a", 0.5)
    found = Journal(journal.journal_path(out)).look()
    assert found
    assert (found.step, found.done, found.steps) == ("two", 1, 4)
    assert [(one.group, one.row, one.values) for one in found.samples] == [("b · call", "a", [0.25, 0.5])]
    assert not {"\x1b", "\u202e"} & set(found.model_dump_json())
    journal.remove_journal(out)
    assert not journal.journal_path(out).exists()
    assert Journal(journal.journal_path(out)).look() is None


def test_a_load_is_followed_second_by_second(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with journal.record_load(Deaf(), out, "there") as watcher:
        watcher.begin(3.0)
        for at_s in range(3):
            watcher.second(second(float(at_s)))
        found = Journal(journal.journal_path(out)).look()
    assert found
    assert found.planned_s == 3.0
    assert found.series
    assert found.series.ok == [9, 9, 9]


def test_half_a_line_and_rubbish_are_passed_over(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with journal.record_progress(Silent(), out, "clients", "x") as progress:
        progress.begin(2)
        progress.step("one")
    with journal.journal_path(out).open("a") as file:
        file.write(
            '[]\n"x"\n{"step": "two"}\n{"sample": "x", "group": 1}\n{"second": {"at_s": "y"}}\n{"begin": "many"}\n'
        )
        file.write("[" * 100_000 + '\n{"step": "thr')
    found = Journal(journal.journal_path(out)).look()
    assert found
    assert (found.step, found.done, found.steps, found.samples, found.series) == ("two", 1, 2, [], None)
    for text in (
        "",
        "x",
        "{}",
        '{"live": "mcpace.live/9", "kind": "clients"}',
        '{"live": "mcpace.live/1", "kind": "x"}',
    ):
        journal.journal_path(out).write_text(text)
        assert Journal(journal.journal_path(out)).look() is None


def test_a_journal_is_gone_where_nothing_will_be_saved_and_never_a_failure(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with pytest.raises(ValueError, match="of the experiment"), journal.record_progress(Silent(), out, "clients", "x"):
        assert journal.journal_path(out).exists()
        raise ValueError("of the experiment")
    assert list(tmp_path.iterdir()) == []
    for place in (Path("/dev/null"), tmp_path / "file" / "run.json", None):
        (tmp_path / "file").write_text("in the way")
        with journal.record_progress(Silent(), place, "clients", "x") as progress:
            progress.step("one")
    assert not Path("/dev/null.live").exists()


def test_figures_that_are_none_are_passed_over(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with journal.record_progress(Silent(), out, "clients", "x") as progress:
        progress.sample("a", "b", 0.5)
    large = "1" + "0" * 400
    with journal.journal_path(out).open("a") as file:
        for value in (large, "Infinity", "NaN", "-1", "1e999", "true"):
            file.write(f'{{"sample": {value}, "group": "a", "row": "b", "unit": "s"}}\n')
        file.write(f'{{"planned_s": {large}}}\n{{"begin": {large}}}\n{{"begin": -1}}\n')
        file.write(
            f'{{"second": {{"at_s": 0, "warm_up": false, "users": {large}, "intended": 1, "ok": 1, "errors": 0}}}}\n'
        )
    found = Journal(journal.journal_path(out)).look()
    assert found
    assert [one.values for one in found.samples] == [[0.5, 1.0]]
    assert (found.planned_s, found.steps) == (None, None)
    assert Folder(tmp_path, COMPARED).listing().entries


def test_a_long_journal_is_read_on_to_its_end(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    looked = Journal(journal.journal_path(out))
    with journal.record_progress(Silent(), out, "clients", "x") as progress:
        progress.step("first")
        assert (found := looked.look())
        assert found.step == "first"
        with journal.journal_path(out).open("a") as file:
            for number in range(40):
                file.write(f'{{"sample": {number}, "group": "a", "row": "b", "unit": "s"}}\n' * 10_000)
                file.write(f'{{"note": "{"x" * 2**21}"}}\n')
        progress.step("last")
        with journal.journal_path(out).open("a") as file:
            file.write('{"step": "half')
        for one in (looked, Journal(journal.journal_path(out))):
            assert (found := one.look())
            assert found.step == "last"
            assert found.samples[0].values == [39.0] * 400
        with journal.journal_path(out).open("a") as file:
            file.write(' a line"}\n')
        assert (found := looked.look())
        assert (found.step, found.notes) == ("half a line", [])


def test_another_run_in_the_same_file_is_another(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    looked = Journal(journal.journal_path(out))
    for what, steps in (("one", 1), ("another", 9), ("third", 2)):
        with journal.record_progress(Silent(), out, "clients", what) as progress:
            for number in range(steps):
                progress.step(f"{what} {number}")
            progress.sample(what, what, 1.0)
            found = looked.look()
            assert found
            assert (found.head.subjects, found.step, found.done) == (what, f"{what} {steps - 1}", steps - 1)
            assert [one.group for one in found.samples] == [what]


def test_whose_program_is_gone_has_ended(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with journal.record_progress(Silent(), out, "clients", "x"):
        text = journal.journal_path(out).read_text()
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        for pid, ended in ((os.getpid(), False), (1, False), (gone.pid, True), (0, True), (-1, True), ('"x"', True)):
            journal.journal_path(out).write_text(re.sub(r'"pid": \d+', f'"pid": {pid}', text))
            found = Journal(journal.journal_path(out)).look()
            assert found
            assert found.ended == ended, pid


def test_a_run_leaves_no_journal_and_a_killed_one_does(tmp_path: Path) -> None:
    ended = run("measure", "profile:simple", "--trials", "2", "--out", "run.json", folder=tmp_path)
    assert ended.code == 0, ended.stderr
    assert sorted(place.name for place in tmp_path.iterdir()) == ["run.json"]
    ended = run("measure", "http://127.0.0.1:1/mcp", "--out", "none.json", folder=tmp_path)
    assert ended.code == 3
    assert sorted(place.name for place in tmp_path.iterdir()) == ["run.json"]
    words = ("load", "profile:simple", "--duration", "60s", "--warm-up", "0s", "--out", "load.json")
    with start_command(*words, folder=tmp_path) as process:
        place = tmp_path / "load.json.live"
        while (found := Journal(place).look()) is None or not found.series:
            assert process.poll() is None, process.communicate()
        assert not found.ended
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
    found = Journal(place).look()
    assert found
    assert found.ended


# --- the whole of it ---


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def test_runs_are_listed_opened_and_compared(runs: Path, browser: Browser) -> None:
    with served(runs) as server, Watched(browser) as watched:
        page = watched.open(server.url)
        expect(page.locator(".runs li")).to_have_count(4)
        assert server.token not in page.url
        page.locator("input[type=search]").fill("answered")
        expect(page.locator(".runs li:visible")).to_have_count(1)
        page.locator("input[type=search]").fill("")
        page.get_by_role("link", name=re.compile("^python 1.12.1 and 1.13.0 are")).first.click()
        expect(page.locator("#calls")).to_be_visible()
        page.reload()
        expect(page.locator("#calls")).to_be_visible()
        page.locator(".topbar .brand").click()
        page.locator('input[value="clients.json"]').check()
        page.locator('input[value="partial.json"]').check()
        page.locator("a.compare").click()
        expect(page.locator("table.ratios")).to_be_visible()
        assert watched.troubles == []
        own = f"http://127.0.0.1:{server.server_port}/"
        assert [url for url in watched.asked if not url.startswith(own)] == []


def test_a_hostile_folder_does_nothing(runs: Path, browser: Browser) -> None:
    name = "<img src=x onerror=alert(1)>.json"
    (runs / "hostile.json").rename(runs / name)
    (runs / "broken.json").write_text('{"schema": "mcpace.run/1", "kind": "<script>alert(1)</script>"}')
    with served(runs) as server, Watched(browser) as watched:
        page = watched.open(server.url)
        expect(page.locator(".runs li")).to_have_count(5)
        assert name in page.locator(".runs").inner_text()
        page.locator("li", has_text=name).locator("a").click()
        expect(page.locator("#trials")).to_be_visible()
        assert page.locator("main :is(script, img)").count() == 0
        assert watched.troubles == []


def test_a_run_is_watched_until_it_is_saved(runs: Path, browser: Browser) -> None:
    out = runs / "new.json"
    with served(runs) as server, Watched(browser) as watched:
        page = watched.open(server.url)
        with journal.record_progress(Silent(), out, "clients", "somebody") as progress:
            progress.begin(3)
            progress.step("round 1")
            page.locator("li.live a").click()
            expect(page.locator("h1")).to_contain_text("round 1")
            expect(page.locator(".progress")).to_contain_text("step 0 of 3")
            progress.sample("there · call", "python@1", 0.25)
            progress.step("round 2")
            expect(page.locator("h1")).to_contain_text("round 2")
            expect(page.locator("#samples .value").first).to_contain_text("250")
        out.write_text((RUNS / "measure.json").read_text())
        journal.remove_journal(out)
        expect(page.locator("h1")).to_contain_text("A call to greet takes")
        assert page.url.endswith("#/run/new.json")


def test_a_page_goes_on_asking_a_server_that_was_away(runs: Path, browser: Browser) -> None:
    with served(runs) as server, Watched(browser) as watched:
        page = watched.open(server.url)
        page.route("**/api/**", lambda route: route.abort())
        expect(page.locator("h1")).to_contain_text("doesn't answer")
        page.unroute("**/api/**")
        expect(page.locator(".runs li")).to_have_count(4)
        page.evaluate("location.hash = '#/run/%zz'")
        expect(page.locator("h1")).to_contain_text("no such page")


def test_without_the_token_the_page_says_what_to_do(runs: Path, browser: Browser) -> None:
    with served(runs) as server, Watched(browser) as watched:
        page = watched.open(f"http://127.0.0.1:{server.server_port}/#token=wrong")
        expect(page.locator("h1")).to_contain_text("open the address that mcpace ui printed")
        page = watched.open(server.url)
        expect(page.locator(".runs li")).to_have_count(4)


def test_the_command_serves_and_ends(runs: Path) -> None:
    with start_command("ui", runs, folder=runs) as process:
        assert process.stdout
        said = process.stdout.readline()
        match = re.search(r"at http://127\.0\.0\.1:(\d+)/#token=([\w-]{32})$", said.strip())
        assert match, said
        connection = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=30)
        connection.request("GET", "/api/runs", headers={"x-mcpace-token": match[2]})
        assert json.loads(connection.getresponse().read())["folder"] == str(runs.resolve())
        taken = run("ui", runs, "--port", match[1], folder=runs)
        assert (taken.code, taken.sentence()) == (3, f"cannot listen on 127.0.0.1:{match[1]}: Address already in use")
        os.killpg(process.pid, signal.SIGINT)
        assert line(process) == "mcpace: ended\n"
        assert end(process).code == 0


def test_a_folders_name_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b]0;x\x07\udcff"
    folder.mkdir()
    with start_command("ui", folder, folder=tmp_path) as process:
        assert process.stdout
        said = process.stdout.readline()
        assert re.search(r"/a\]0;x at http://127\.0\.0\.1:\d+/#token=[\w-]{32}$", said.strip()), said
        os.killpg(process.pid, signal.SIGINT)
        end(process)


def test_the_browser_is_handed_a_file_of_ones_own_and_served_while_it_stays(runs: Path) -> None:
    browser = runs / "browser"
    told = runs / "told.json"
    # It stays until it has been answered, as one on a console does.
    browser.write_text(
        f"#!{sys.executable}\n"
        "import json, os, pathlib, re, sys, urllib.request\n"
        "place = pathlib.Path(sys.argv[1].removeprefix('file://'))\n"
        "text = place.read_text()\n"
        "url = re.search('url=(.+?)#', text)[1]\n"
        "page = urllib.request.urlopen(url, timeout=60).read()\n"
        "seen = {'argv': sys.argv, 'text': text, 'page': len(page), 'file': place.stat().st_mode & 0o777,"
        " 'folder': place.parent.stat().st_mode & 0o777}\n"
        f"pathlib.Path({str(told)!r} + '.new').write_text(json.dumps(seen))\n"
        f"os.rename({str(told)!r} + '.new', {str(told)!r})\n"
        "print('seen', flush=True)\n"
    )
    browser.chmod(0o700)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "BROWSER": str(browser)}
    with subprocess.Popen([*COMMAND, "ui", runs], stdout=theirs, env=environment, start_new_session=True) as process:
        os.close(theirs)
        try:
            said = b""
            while b"seen" not in said:
                assert select.select([ours], [], [], 60)[0], said
                said += os.read(ours, 4096)
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(timeout=60)
            os.close(ours)
    seen = json.loads(told.read_text())
    token = re.search(rb"#token=([\w-]{32})", said)
    assert token
    assert token[1].decode() in seen["text"]
    assert not [word for word in seen["argv"] if token[1].decode() in word]
    assert (seen["file"], seen["folder"]) == (0o600, 0o700)
    assert seen["page"] > 10_000
    assert not Path(seen["argv"][1].removeprefix("file://")).exists()


def test_no_browser_of_a_console_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not has_browser({}, "linux")
    assert has_browser({"DISPLAY": ":0"}, "linux")
    assert has_browser({"BROWSER": "firefox"}, "linux")
    assert has_browser({}, "darwin")
    asked: list[str] = []
    for name in ("/usr/bin/w3m", "firefox"):
        found = webbrowser.GenericBrowser(name)
        monkeypatch.setattr(found, "open", asked.append)
        monkeypatch.setattr(webbrowser, "get", lambda found=found: found)
        opening._open_url(name)
    assert asked == ["firefox"]


def test_what_is_no_folder_is_said(tmp_path: Path) -> None:
    ended = run("ui", "nowhere", folder=tmp_path)
    assert ended.code == 2
    assert "nowhere is not a folder" in ended.sentence()
