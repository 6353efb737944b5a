"""The option ``--server-timing`` of ``mcpace load``: an additional user measures the server's layers."""

from __future__ import annotations

import json
import threading
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from mcpace.lab.load.layers import FAILURES, LayerSampler
from mcpace.lab.load.plan import Operation
from mcpace.report.model.run import Run
from support.commands import mcp_answer, read_request, run, tcp_server

DURATION = ("--duration", "1s", "--warm-up", "0s")


def loaded(folder: Path, *more: str) -> tuple[Run, str]:
    arguments = 'greet={"name": "user {{user}}"}'
    words = ("profile:simple", "--mix", "greet=1", "--args", arguments, "--vus", "2", *DURATION)
    ended = run("load", *words, *more, "--out", "run.json", "--html", "page.html", folder=folder)
    assert ended.code == 0, ended.stderr
    return Run.load(folder / "run.json"), ended.stdout


def test_the_layers_are_measured_beside_the_load_and_add_up(tmp_path: Path) -> None:
    result, shown = loaded(tmp_path, "--server-timing")
    (case,) = result.cases
    assert case.load is not None and case.ledger_s is not None and case.ledger_s.server_split is not None
    split = case.ledger_s.server_split
    assert case.load.beside == split.reported == split.of_calls and split.reported
    assert split.rest is not None
    assert isclose(split.transport + split.dispatch + split.service + split.rest, case.ledger_s.server)
    # They are in no figure of the load's own.
    assert case.by_tool is not None and case.by_tool["greet"].count <= case.load.begun
    assert "beside the load" in shown and "the server says: transport" in shown
    assert "one user more" in (tmp_path / "page.html").read_text()


def test_nobody_asks_unless_it_is_wanted(tmp_path: Path) -> None:
    result, shown = loaded(tmp_path)
    (case,) = result.cases
    assert case.ledger_s is None and case.load is not None and case.load.beside is None
    assert "the server says" not in shown


class Refusing:
    """A stand-in for the client whose every connect fails."""

    def __init__(self, problem: Exception) -> None:
        self.problem, self.connects, self.enough = problem, 0, threading.Event()

    def connect(self) -> None:
        self.connects += 1
        if self.connects == FAILURES:
            self.enough.set()
        raise self.problem

    def disconnect(self) -> None:
        """Does nothing, since nothing is connected."""


def test_who_gets_no_answer_stops_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpace import _core
    from mcpace.lab.load import layers

    monkeypatch.setattr(layers, "EVERY_S", 0.0)
    client: Any = Refusing(_core.ClientProblem("refused"))
    operations = [Operation(name="x", kind="call", tool="x", arguments={})]
    sampler = LayerSampler(lambda: client, operations, {}, planned_s=0.0)
    with sampler:
        assert client.enough.wait(30)
        sampler._thread.join(30)
        # It has ended by itself, the load still going on.
        assert not sampler._thread.is_alive()
    assert client.connects == FAILURES


def test_a_server_that_does_not_know_the_question_has_a_ledger_and_no_split(tmp_path: Path) -> None:
    def answer(connection: Any) -> None:
        while True:
            connection.sendall(mcp_answer(read_request(connection)))

    with tcp_server(answer, read=False) as url:
        words = ("load", url, "--mix", "greet=1", "--vus", "1", *DURATION, "--server-timing", "--json")
        ended = run(*words, folder=tmp_path)
    assert ended.code == 0, ended.stderr
    (case,) = json.loads(ended.stdout)["cases"]
    assert case["ledger_s"]["server"] > 0 and case["ledger_s"]["server_split"] is None


@pytest.mark.network
def test_servers_report_their_layers_over_all_rounds(tmp_path: Path) -> None:
    words = ("servers", "mcpace-python:json", "--vus", "2", "--duration", "1s", "--rounds", "2", "--warm-up", "0s")
    ended = run(*words, "--server-timing", "--json", folder=tmp_path)
    assert ended.code == 0, ended.stderr
    (case,) = Run.from_json(ended.stdout).cases
    assert case.load is not None and case.ledger_s is not None and case.ledger_s.server_split is not None
    split = case.ledger_s.server_split
    assert split.reported == split.of_calls == case.load.beside and split.service > 0
    assert split.rest is not None
    assert isclose(split.transport + split.dispatch + split.service + split.rest, case.ledger_s.server)
