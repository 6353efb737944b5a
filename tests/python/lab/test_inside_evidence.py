"""The collection of evidence about a server that mcpace starts: its order, and sources that fail."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from mcpace import _core
from mcpace.lab import targets
from mcpace.lab.clients import measure
from mcpace.lab.clients.plan import Settings
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.inside import evidence
from mcpace.lab.inside.evidence import InsideEvidence
from mcpace.lab.inside.instrumentation import Variables
from mcpace.lab.load.engine import Quiet
from mcpace.lab.load.run_load import run_load
from mcpace.lab.load.settings import LoadSettings
from mcpace.lab.processes.process_usage import process_tree
from mcpace.lab.progress import Silent
from mcpace.lab.servers import run_servers
from mcpace.lab.servers.plan import ServersPlan
from mcpace.lab.servers.server_under_test import NULL_SERVER, ServerUnderTest
from mcpace.lab.targets import Tool
from mcpace.report.model.run import Case, Subject
from support.commands import COMMAND

PROGRAM = targets.parse_target(f"serve:{COMMAND[0]} target simple")
GREET = Tool("greet", {"name": "x"})
ECHO_OVER_STDIO = """
from mcpace import MCPServer
server = MCPServer("echo")
@server.tool()
def echo(text: str) -> str:
    return text
server.run("stdio")
"""


class QuietWatcher(Silent, Quiet):
    """Receives what a load tells, and keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class RecordingInstrumentation:
    """A stand-in that notes whether the watched process ran at each step."""

    def __init__(self, fails_at: str = "") -> None:
        self.pid = 0
        self.fails_at = fails_at
        self.steps: list[tuple[str, bool]] = []

    def note_step(self, name: str) -> None:
        if (name, self.is_running()) not in self.steps:
            self.steps.append((name, self.is_running()))
        if name == self.fails_at:
            raise OSError("planted")

    def is_running(self) -> bool:
        return bool(self.pid and process_tree(self.pid))

    def variables(self, own: Variables) -> list[tuple[str, str]]:
        return []

    def watch(self, pid: int) -> None:
        self.pid = pid

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def end_sampling(self) -> None:
        self.note_step("end sampling")

    def close(self) -> None:
        self.note_step("close")

    def has_evidence(self) -> bool:
        return True

    def add_to(self, recording: _core.Recording) -> None:
        self.note_step("add")
        recording.add_missing_source("stacks", "a stand-in takes none")


@pytest.fixture
def instrumentation(monkeypatch: pytest.MonkeyPatch) -> RecordingInstrumentation:
    one = RecordingInstrumentation()
    monkeypatch.setattr(evidence, "make_instrumentation", lambda *_: one)
    return one


def measure_program() -> None:
    run = measure.run(replace(PROGRAM, tool=GREET), Settings(trials=2, calls=1), Silent(), inside=True)
    assert all(case.trials_s for case in run.cases)


LOAD = LoadSettings(
    vus=1, duration_s=0.2, warm_up_s=0.0, mix=(("greet", 1.0),), arguments={"greet": {"name": "x"}}, inside=True
)


def load_program() -> None:
    [case] = run_load(PROGRAM, LOAD, QuietWatcher()).cases
    assert case.inside_sums is not None and case.inside_sums.calls > 0


def compare_program() -> None:
    with ExitStack() as stack:
        conditions = run_servers._common_conditions(ServersPlan(("null",), vus=1, duration_s=0.5, rounds=1), stack)
        sources = stack.enter_context(InsideEvidence(NULL_SERVER, print))
        server = ServerUnderTest(
            Subject(sdk="floor", mode="json"), conditions, NULL_SERVER, checked=False, evidence=sources
        )
        stack.callback(server.close)
        sums = server.look_inside(Case(subject=server.subject, target="null", operation="call"))
        assert sums is not None and sums.calls > 0


@pytest.mark.usefixtures("instrumentation")
@pytest.mark.parametrize(("may_run_fewer", "rounds"), [(True, measure.SLOW_START_TRIALS), (False, 4)])
def test_a_program_that_takes_long_to_start_has_fewer_rounds_unless_the_user_set_their_number(
    may_run_fewer: bool, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "SLOW_START_S", 0.0)
    command = shlex.join([sys.executable, "-c", ECHO_OVER_STDIO])
    target = replace(targets.parse_target(f"stdio:{command}"), tool=Tool("echo", {"text": "x"}))
    settings = Settings(trials=4, calls=1, may_run_fewer=may_run_fewer)
    run = measure.run(target, settings, Silent(), inside=True)
    assert run.options["trials"] == rounds
    assert [len(case.trials_s) for case in run.cases] == [rounds] * 3
    inside = run.cases[2].inside
    assert inside is not None
    added = inside.added
    assert added is not None
    assert (added.rounds, added.slow_start_s is not None) == (rounds - 1, may_run_fewer)


@pytest.mark.parametrize("experiment", [measure_program, load_program, compare_program])
def test_evidence_that_a_program_leaves_as_it_ends_is_read_after_its_end(
    experiment: Callable[[], None], instrumentation: RecordingInstrumentation
) -> None:
    experiment()
    assert instrumentation.steps == [("end sampling", True), ("close", False), ("add", False)]


@pytest.mark.parametrize("fails_at", ["close", "cleanup"])
def test_each_source_is_stopped_although_another_one_fails(
    fails_at: str, instrumentation: RecordingInstrumentation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instrumentation.fails_at = fails_at
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sources = InsideEvidence(["python"], print)
    sources.watch(os.getpid())
    watchers, port = list(sources._watchers), int(sources._receiver.endpoint.rpartition(":")[2])
    assert len(watchers) == 2
    socket.create_connection(("127.0.0.1", port)).close()
    if fails_at == "cleanup":
        # A program that still runs writes a file while the folder is deleted.
        [folder] = tmp_path.iterdir()
        monkeypatch.setattr(os, "rmdir", refuse_full_folder)
        sources.close()
        assert folder.exists()
    else:
        with pytest.raises(OSError, match="planted"):
            sources.close()
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    for watcher in watchers:
        with pytest.raises(_core.UsageProblem):
            watcher.stop()
    sources.close()


def refuse_full_folder(*path: object, **options: object) -> None:
    raise OSError(errno.ENOTEMPTY, "Directory not empty")


PROBLEMS = pytest.mark.parametrize(
    "problem", [EnvironmentProblem("planted"), _core.EnvironmentProblem("planted"), OSError("planted")]
)


def refuse(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    def make(*_: object) -> None:
        raise problem

    monkeypatch.setattr(evidence, "make_instrumentation", make)


@PROBLEMS
def test_a_measured_load_is_kept_where_its_server_cannot_be_looked_into(
    problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, problem)
    watcher = QuietWatcher()
    [case] = run_load(PROGRAM, LOAD, watcher).cases
    assert case.service_s is not None and case.inside_sums is None
    assert watcher.notes[-1] == "the server could not be looked into: planted"


@PROBLEMS
def test_a_finished_comparison_is_kept_where_a_server_cannot_be_looked_into(
    problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, problem)
    watcher = QuietWatcher()
    with ExitStack() as stack:
        conditions = run_servers._common_conditions(ServersPlan(("null",), vus=1, duration_s=0.5, rounds=1), stack)
        bench = run_servers._Bench([Subject(sdk="floor", mode="json")], conditions)
        stack.callback(bench.close)
        [server] = bench.servers
        server.command, server.checked = NULL_SERVER, False
        server.start_server()
        server.run_round(1)
        bench.look_inside([Case(subject=server.subject, target="null", operation="call")], watcher)
    assert server.error is None and server.rounds
    assert watcher.notes == [f"{server.subject.label()} could not be looked into: planted"]
