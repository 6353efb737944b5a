"""Exports of recordings, read by real consumers: a collector for spans, and the rules of each other format."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from support import commands
from support.otlp_collector import run_collector

RUN = Path(__file__).parents[2] / "fixtures" / "runs" / "clients.json"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records two rounds of connect, list and call of mcpace's client at a profile with sessions and event streams."""
    folder = tmp_path_factory.mktemp("recording")
    made = commands.run(
        "measure",
        "profile:notion",
        "--trials",
        2,
        "--calls",
        1,
        "--hold",
        "20ms",
        "--recordings",
        folder,
        folder=folder,
    )
    assert made.code == 0, made.stderr
    return folder / "measure-profile-notion.jsonl.zst"


def exported(recording: Path, option: str, folder: Path) -> str:
    done = commands.run("export", recording, option, "out", folder=folder)
    assert done.code == 0, done.stderr
    return (folder / "out").read_text()


def test_a_har_has_every_exchange_with_its_times_and_bodies(recording: Path, tmp_path: Path) -> None:
    log = json.loads(exported(recording, "--har", tmp_path))["log"]
    assert (log["version"], log["creator"]["name"]) == ("1.2", "mcpace")
    calls = [entry for entry in log["entries"] if entry.get("_mcp", {}).get("method") == "tools/call"]
    assert len(calls) == 2
    for entry in log["entries"]:
        _holds_to_the_format(entry)
    call = calls[0]
    assert json.loads(call["request"]["postData"]["text"])["method"] == "tools/call"
    assert call["response"]["content"]["mimeType"].startswith("text/event-stream")
    assert '"result"' in call["response"]["content"]["text"]
    assert 0 < call["_result_ms"] < call["time"]
    # The stream stays open for 20 ms after the result.
    assert call["time"] - call["_result_ms"] >= 15


def _holds_to_the_format(entry: dict[str, Any]) -> None:
    """Checks HAR 1.2: required members of an entry, and that its times add up (`ssl` is part of `connect`)."""
    datetime.fromisoformat(entry["startedDateTime"])
    assert {"method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize"} <= set(
        entry["request"]
    )
    assert entry["request"]["url"].startswith("http")
    assert {"status", "statusText", "content", "redirectURL", "headersSize", "bodySize"} <= set(entry["response"])
    parts = [entry["timings"][name] for name in ("blocked", "dns", "connect", "send", "wait", "receive")]
    assert sum(part for part in parts if part >= 0) == pytest.approx(entry["time"], abs=1e-6)


def test_no_secret_leaves_in_any_format(recording: Path, tmp_path: Path) -> None:
    names = r"Bearer (?!resource_metadata)|code_verifier=|[?&]code=|refresh_token=|access_token[\\\": ]+"
    secrets = rf'(?:{names})([^&"\\]+)'
    seen = []
    for option in ("--har", "--trace", "--otlp"):
        seen += re.findall(secrets, exported(recording, option, tmp_path))
    assert len(seen) >= 4  # the profile's OAuth has that many places for one
    assert all(value.startswith("[redacted ") for value in seen), seen


def test_slices_of_a_trace_lie_within_each_other(recording: Path, tmp_path: Path) -> None:
    document = json.loads(exported(recording, "--trace", tmp_path))
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    named = [one for one in slices if one["cat"] == "operation"]
    names = [one["name"].split()[0] for one in sorted(named, key=lambda one: one["ts"])]
    assert [name for name in names if name != "disconnect"] == ["connect", "list", "call"] * 2
    rows: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for one in slices:
        assert one["dur"] >= 0 and one["ts"] >= 0
        rows.setdefault((one["pid"], one["tid"]), []).append(one)
    for row in rows.values():
        _nests(row)
    parts = [one for one in slices if one["cat"] == "ledger"]
    spans = sum(one["dur"] for one in parts)
    assert spans == pytest.approx(sum(one["dur"] for one in named), rel=1e-6)


def _nests(row: list[dict[str, Any]]) -> None:
    """Checks that slices of a row nest: Perfetto requires that no slice crosses another's end."""
    open_ends: list[float] = []
    for one in sorted(row, key=lambda one: (one["ts"], -one["dur"])):
        while open_ends and open_ends[-1] <= one["ts"] + 1e-3:
            open_ends.pop()
        end = one["ts"] + one["dur"]
        assert not open_ends or end <= open_ends[-1] + 1e-3, one
        open_ends.append(end)


def test_a_collector_takes_the_spans(recording: Path, tmp_path: Path) -> None:
    with run_collector(tmp_path) as collector:
        url = f"http://127.0.0.1:{collector.port}/v1/traces"
        sent = commands.run("export", recording, "--otlp", url, folder=tmp_path)
        assert sent.code == 0, sent.stderr
        document = [json.loads(line) for line in exported(recording, "--otlp", tmp_path).splitlines()]
        spans = [span for line in document for span in line["resourceSpans"][0]["scopeSpans"][0]["spans"]]
        told = collector.wait(len(spans))
    assert len(told) == len(spans)
    assert {span.name for span in told} == {span["name"] for span in spans}
    ids = {span["spanId"] for span in spans}
    assert len(ids) == len(spans)
    assert all(span["parentSpanId"] in ids for span in spans if "parentSpanId" in span)
    call = next(span for span in spans if span["name"].startswith("tools/call"))
    attributes = {one["key"]: one["value"] for one in call["attributes"]}
    assert attributes["mcp.method.name"] == {"stringValue": "tools/call"}
    assert attributes["http.response.status_code"] == {"intValue": "200"}
    # On the wall's clock: within a minute of the file's own time.
    age = recording.stat().st_mtime - int(call["startTimeUnixNano"]) / 1e9
    assert abs(age) < 60


def test_stdio_is_no_har_but_a_trace(tmp_path: Path) -> None:
    made = commands.run("measure", "stdio:cat", "--trials", 1, "--recordings", tmp_path, folder=tmp_path)
    assert made.code == 3
    recorded = tmp_path / "measure-stdio-cat.jsonl.zst"
    refused = commands.run("export", recorded, "--har", "out", folder=tmp_path)
    assert refused.code == 2
    assert "HAR is of HTTP" in refused.sentence()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ([], 2, "say what to export"),
        (["--otlp", "http://"], 2, "is not a collector's URL"),
        (["--otlp", "http://[::1/v1/traces"], 2, "is not a collector's URL"),
        (["--otlp", "http://h:x/v1/traces"], 2, "is not a collector's URL"),
        (["--otlp", "http://127.0.0.1:1/v1/traces"], 3, "could not be reached"),
        (["--otlp", "http://127.0.0.1:1/v1/traces?key=PLANTED"], 3, "traces?key=… could not be reached"),
        (["--otlp", "http://u:PLANTED@127.0.0.1:1/v1/traces"], 2, "--otlp http://127.0.0.1:1/v1/traces has a user"),
        (["--har", "/dev/null/out.har"], 3, "cannot write"),
    ],
)
def test_what_can_not_be_done_is_said(
    recording: Path, words: list[str], code: int, sentence: str, tmp_path: Path
) -> None:
    done = commands.run("export", recording, *words, folder=tmp_path)
    assert done.code == code
    assert sentence in done.sentence()
    assert "PLANTED" not in done.stderr


def test_a_file_for_another_command_is_told_which(recording: Path, tmp_path: Path) -> None:
    for words in (["explain", RUN], ["export", RUN, "--har", "out"]):
        done = commands.run(*words, folder=tmp_path)
        assert (done.code, done.sentence()) == (2, f"{RUN} is a run, not a recording: mcpace report FILE shows it")
    for words in (["report", recording], ["compare", RUN, recording], ["gate", RUN, "--baseline", recording]):
        done = commands.run(*words, folder=tmp_path)
        wanted = f"{recording} is a recording, not a run: mcpace explain FILE tells what is in it"
        assert (done.code, done.sentence()) == (2, wanted)
    (tmp_path / "neither.jsonl").write_text("neither")
    for words in (["explain", "neither.jsonl"], ["export", "neither.jsonl", "--har", "out"]):
        done = commands.run(*words, folder=tmp_path)
        assert (done.code, done.sentence()[:34]) == (2, "neither.jsonl is not a recording: ")


def test_a_collector_that_is_away_took_nothing(recording: Path, tmp_path: Path) -> None:
    done = commands.run("export", recording, "--otlp", "http://127.0.0.1:1/v1/traces", folder=tmp_path)
    assert done.sentence() == "http://127.0.0.1:1/v1/traces could not be reached: Connection refused"


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """Gives the same answer to every whole request and closes the connection."""

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as asked:
                length = 0
                while (line := asked.readline()) not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                asked.read(length)
                connection.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/traces"
        listener.shutdown(socket.SHUT_RDWR)


def http(status: str, body: str, length: int | None = None) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {length or len(body)}\r\nconnection: close\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        # HTTP/2's SETTINGS, as a gRPC server answers.
        (b"\0\0\6\4\0\0\0\0\0\0\5\0\0@\0", "if this is its gRPC port"),
        (http("503 Busy", "later\x1b[31m"), "answered HTTP 503: later"),
        (http("503 Busy", "l", 90), "answered HTTP 503"),
        (b"", "hung up: if this is its gRPC port"),
    ],
)
def test_what_a_collector_can_get_wrong(recording: Path, tmp_path: Path, reply: bytes, sentence: str) -> None:
    with answering(reply) as url:
        done = commands.run("export", recording, "--otlp", url, folder=tmp_path)
    assert done.code == 3
    assert sentence in done.sentence()


def test_a_collector_that_refuses_spans_and_says_200_is_believed(recording: Path, tmp_path: Path) -> None:
    told = {"partialSuccess": {"rejectedSpans": "7", "errorMessage": "too old\x1b[31m"}}
    with answering(http("200 OK", json.dumps(told))) as url:
        done = commands.run("export", recording, "--otlp", url, folder=tmp_path)
    assert done.code == 3
    assert re.search(r"refused \d+ of the spans: too old", done.sentence())
    assert "\x1b" not in done.stderr
    for harmless in ("{}", "null", '{"partialSuccess": {}}', "nonsense", '{"partialSuccess": {"rejectedSpans": []}}'):
        with answering(http("200 OK", harmless)) as url:
            done = commands.run("export", recording, "--otlp", url, folder=tmp_path)
        assert (done.code, "sent 1 batch" in done.stderr) == (0, True), harmless


def test_a_link_stays_one_and_nobody_else_may_read(recording: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "out").symlink_to(elsewhere / "told")
    before = os.umask(0o022)
    try:
        exported(recording, "--trace", tmp_path)
        assert (tmp_path / "out").is_symlink()
        assert stat.S_IMODE((elsewhere / "told").stat().st_mode) == 0o644 & stat.S_IMODE(recording.stat().st_mode)
        os.umask(0o077)
        made = commands.run("compare", RUN, RUN, "--out", "compared.json", folder=tmp_path)
        assert made.code == 0, made.stderr
        assert stat.S_IMODE((tmp_path / "compared.json").stat().st_mode) == 0o600
        private = tmp_path / "private.jsonl.zst"
        private.write_bytes(recording.read_bytes())
        os.umask(0o022)
        done = commands.run("export", private, "--har", "new/out.har", folder=tmp_path)
        assert done.code == 0, done.stderr
        assert stat.S_IMODE((tmp_path / "new" / "out.har").stat().st_mode) == 0o600
        assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["out.har"]
    finally:
        os.umask(before)
