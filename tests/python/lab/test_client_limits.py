"""Time limits of clients: releases of the Python SDK with known time-outs, and clients that stand in for others."""

from __future__ import annotations

import json
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from mcpace.lab.clients import limits
from mcpace.lab.clients.client_program import Answer
from mcpace.lab.clients.limits import LAYERS, Places, WaitingPrograms
from mcpace.lab.clients.run_clients import Ready
from mcpace.lab.machine import new_run
from mcpace.report import tables
from mcpace.report.model.limits import ClientLimits, LimitFacts, LimitLayer
from mcpace.report.model.run import Run, Subject
from mcpace.report.verdict import verdict
from support.commands import run

STAND_IN = """
import json, sys, time, urllib.request, socket

LIMIT_S = {limit}

def post(url, message, limit_s):
    body = json.dumps(message).encode()
    head = {{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}}
    deadline = time.monotonic() + limit_s
    reply = urllib.request.urlopen(urllib.request.Request(url, body, head), timeout=limit_s)
    heard = 0
    while line := reply.readline():
        heard += b"notifications/progress" in line
        if b'"result"' in line:
            return heard
        # The time-out of the socket is that of silence; this one is that of the whole call.
        if {whole} and time.monotonic() > deadline:
            raise TimeoutError("the whole call took too long")

print(json.dumps({{"ready": True, "sdk": "stand-in", "version": "1", "pid": 1}}), flush=True)
url = ""
for line in sys.stdin:
    command = json.loads(line)
    name, begun = command["cmd"], time.monotonic_ns()
    answer = {{"op": name, "ok": True, "result": {{}}}}
    try:
        if name == "connect":
            url = command["url"]
            if urllib.request.urlparse(url).port:
                socket.create_connection(("127.0.0.1", urllib.request.urlparse(url).port), LIMIT_S).close()
        else:
            meta = {{"_meta": {{"progressToken": 1}}}} if command.get("progress") else {{}}
            params = {{"name": command["name"], "arguments": command["arguments"], **meta}}
            message = {{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}}
            answer["result"]["progress"] = post(url, message, LIMIT_S)
    except OSError as error:
        answer |= {{"ok": False, "error": {{"kind": "timeout", "message": str(error)}}}}
    print(json.dumps({{**answer, "start_ns": begun, "end_ns": time.monotonic_ns()}}), flush=True)
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> limits.Ready:
    """A client that gives up after 1 s of silence, and keeps on for as long as something comes."""
    return program(tmp_path, limit=1.0, whole=False)


def program(folder: Path, *, limit: float, whole: bool) -> Ready:
    path = folder / f"client-{limit}-{whole}.py"
    path.write_text(STAND_IN.format(limit=limit, whole=whole))
    return Ready(Subject(sdk="stand-in"), (sys.executable, str(path)))


class ScriptedProbe:
    """Stands in for a probe: a client that gives up after a time, or never, without a server."""

    def __init__(self, layer: LimitLayer, limit_s: float | None, *, hears_progress: bool = True) -> None:
        self.layer, self.longest_s, self.tried = layer, 90.0, list[float]()
        self._limit_s, self._hears_progress = limit_s, hears_progress

    def answer_after(self, seconds: float) -> Answer:
        self.tried.append(seconds)
        lasted_s = self.longest_s + 5 if self.layer == "connect" else seconds
        if self._limit_s is not None and lasted_s > self._limit_s:
            lasted_ns = round(self._limit_s * 1e9)
            return Answer("call_tool", False, 1, 1 + lasted_ns, error_kind="timeout", error_message="gave up")
        if self.layer == "connect":
            lasted_ns = round(self.longest_s * 1e9)
            return Answer("connect", False, 1, 1 + lasted_ns, error_kind="timeout", error_message="driver's limit")
        return Answer("call_tool", True, 1, 1 + round(seconds * 1e9), {"progress": 3 * self._hears_progress})


@pytest.mark.parametrize(
    ("layer", "limit_s", "found_s"),
    [("head", 30.0, 30.0), ("tool", 60.0, 60.0), ("idle", None, None), ("connect", 5.0, 5.0), ("connect", None, None)],
)
def test_the_bounds_of_a_limit_come_close(layer: LimitLayer, limit_s: float | None, found_s: float | None) -> None:
    probe = ScriptedProbe(layer, limit_s)
    facts = limits.find_limit(probe)  # type: ignore[arg-type]  # stands in for one
    assert (facts.limit_s, facts.unknown) == (found_s, "")
    if layer == "connect":
        assert probe.tried == [90.0] and facts.answered_s is None
    elif found_s is None:
        assert probe.tried == [90.0] and facts.answered_s == 90.0
    else:
        assert facts.answered_s is not None and 0.9 * found_s <= facts.answered_s < found_s
        assert probe.tried == [90.0, 0.95 * found_s]


def test_a_client_that_asks_for_no_progress_has_no_result_there() -> None:
    facts = limits.find_limit(ScriptedProbe("progress", 60.0, hears_progress=False))  # type: ignore[arg-type]
    assert (facts.limit_s, facts.unknown) == (None, "the adapter asks for no progress")
    assert limits.find_limit(ScriptedProbe("progress", 60.0)).limit_s == 60.0  # type: ignore[arg-type]


def test_a_run_of_limits_is_told_in_words() -> None:
    told = [
        LimitFacts(layer="head", limit_s=30.0, answered_s=28.5, tried_s=90, message="timed out"),
        LimitFacts(layer="tool", tried_s=90, answered_s=90),
        LimitFacts(layer="progress", limit_s=60.0, tried_s=90),
        LimitFacts(layer="body", tried_s=90, unknown="no such tool"),
    ]
    run = new_run("limits", {})
    run.client_limits.append(ClientLimits(subject="typescript@1.32.2", layers=told))
    (table,) = tables.tables(Run.from_json(run.to_json()))
    assert table.columns == ("client", *LAYERS)
    assert table.rows == [
        ("typescript@1.32.2", "–", "30.0\N{NO-BREAK SPACE}s", "–", "> 90 s", "60.0\N{NO-BREAK SPACE}s", "–")
    ]
    assert any("no such tool" in note for note in table.notes)
    words = verdict(run).replace("\N{NO-BREAK SPACE}", " ")
    assert "gives up a call after 30.0 s where the head of the reply does not come" in words
    assert "gives up after 60.0 s although progress comes" in words


def found(ready: Ready, layer: LimitLayer, longest_s: float = 3.0) -> LimitFacts:
    with ExitStack() as stack:
        return limits.find_limit(limits.LayerProbe(ready, Places(stack), layer, longest_s, WaitingPrograms()))


@pytest.mark.parametrize("layer", ["connect", "head", "idle"])
def test_the_limit_of_silence_is_found(layer: LimitLayer, stand_in: Ready) -> None:
    facts = found(stand_in, layer)
    assert facts.limit_s is not None and facts.limit_s >= 1.0 and not facts.unknown, facts
    if layer != "connect":
        assert facts.answered_s is not None and facts.answered_s < facts.limit_s, facts
    assert "timed out" in facts.message


@pytest.mark.parametrize("layer", ["tool", "progress", "body"])
def test_a_client_that_something_keeps_waiting_has_no_limit_there(layer: LimitLayer, stand_in: Ready) -> None:
    facts = found(stand_in, layer)
    assert (facts.limit_s, facts.answered_s, facts.unknown) == (None, 3.0, ""), facts


def test_a_limit_of_the_whole_call_is_found_although_progress_comes(tmp_path: Path) -> None:
    facts = found(program(tmp_path, limit=1.0, whole=True), "progress")
    assert facts.limit_s is not None and facts.limit_s >= 1.0, facts


def test_a_client_that_fails_at_once_has_no_result(tmp_path: Path) -> None:
    facts = found(program(tmp_path, limit=0.05, whole=True), "head")
    assert facts.limit_s is None and facts.unknown, facts


def test_the_full_port_accepts_nobody() -> None:
    with limits._full_port() as port, socket.socket() as another:
        another.settimeout(0.3)
        with pytest.raises(TimeoutError):
            another.connect(("127.0.0.1", port))


def test_a_release_of_the_sdk_shows_its_limits_in_a_run(tmp_path: Path) -> None:
    ended = run("limits", "python@1.30.0", "--timeout", "3s", "--json", folder=tmp_path)
    assert ended.code == 0, ended.stderr
    (client,) = json.loads(ended.stdout)["client_limits"]
    assert [facts["layer"] for facts in client["layers"]] == list(LAYERS)
    # Its time-outs are longer than what is tried.
    assert all(facts["limit_s"] is None and not facts["unknown"] for facts in client["layers"]), client


def test_what_cannot_be_tried_is_refused(tmp_path: Path) -> None:
    for words, sentence in (
        (["pyhton@1.12.1"], "did you mean python?"),
        (["python@1.12.1", "--timeout", "11m"], "from 1s to 540s"),
    ):
        ended = run("limits", *words, folder=tmp_path)
        assert ended.code == 2 and sentence in ended.sentence(), ended
