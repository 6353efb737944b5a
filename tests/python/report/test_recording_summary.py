"""A recording of a foreign client: the report lists its requests by method before it says that no cause was found."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from test_session_figures import LAZY

from mcpace.report.model.run import Finding, Run
from mcpace.report.page.build import page_of
from mcpace.report.verdict import sentences, verdict
from mcpace.report.words.disproofs import DISPROOFS
from mcpace.report.words.recording import LIVE_EXPERIMENTS
from support import commands

ASKED = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "look", "arguments": {}}},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "look", "arguments": {}}},
]


def recorded(folder: Path) -> Run:
    """The output of ``explain`` for a session that was recorded over stdio."""
    (folder / "lazy.py").write_text(LAZY)
    upstream = f"stdio:{sys.executable} -S {folder / 'lazy.py'}"
    words = [*commands.COMMAND, "record", "--upstream", upstream, "--out", "seen.jsonl.zst"]
    said = folder / "said.txt"
    with (
        said.open("w") as errors,
        subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
        ) as process,
    ):
        assert process.stdin and process.stdout
        for message in ASKED:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            if "id" in message:
                assert json.loads(process.stdout.readline())["id"] == message["id"]
        process.stdin.close()
        assert process.wait(commands.LIMIT_S) == 0
    ended = commands.run("explain", "seen.jsonl.zst", "--out", "run.json", folder=folder)
    assert ended.code == 0, ended.stderr
    (folder / "shown.txt").write_text(ended.stdout)
    return Run.load(folder / "run.json")


def test_a_recording_without_operations_is_summarised_by_method(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    assert run.recording is not None
    methods = {(one.method, one.name): one for one in run.recording.methods}
    assert list(methods) == [("initialize", None), ("tools/list", None), ("tools/call", "look")]
    called = methods["tools/call", "look"]
    assert (called.requests, called.succeeded, called.failed) == (2, 2, 0)
    assert called.slowest_s and called.median_s and called.slowest_s >= 0.2 > called.median_s
    assert called.request_bytes > 0 and called.reply_bytes > 0
    [start] = run.recording.starts_s
    assert start >= 0.4
    told = verdict(run)
    assert told.startswith("The server takes ") and "The client sent 4 requests" in told
    assert "the slowest was tools/call look" in told
    assert told.index("to start") < told.index("No cause of lost time was found")
    # The recorder says so at its end, on stderr: stdout belongs to the client.
    said = (tmp_path / "said.txt").read_text()
    assert "the slowest was tools/call look" in said and "No cause of lost time was found" in said
    assert "mcpace explain seen.jsonl.zst" in said
    shown = (tmp_path / "shown.txt").read_text()
    assert "What the client asked" in shown and "tools/call look" in shown and "start of the server" in shown
    # Without trials there is no empty drawing.
    page = page_of(run)
    assert [table.title for table in page.tables] == ["What the client asked", "Results of tools"]
    assert not any(case.trials or case.state for case in page.cases)


def test_a_run_of_an_older_release_says_what_it_has() -> None:
    whole = {"kind": "recording", "started": "2026-01-01T00:00:00Z", "mcpace": "0.1.0"}
    machine = {"system": "L", "architecture": "x", "cpu": "A", "cores": 2, "memory_bytes": 1, "python": "3.11"}
    run = Run.model_validate({**whole, "machine": machine, "recording": {"events": 20}, "cases": []})
    assert verdict(run) == "No cause of lost time was found in 20 events."
    assert page_of(run).tables == []


def told_of(**facts: object) -> list[str]:
    """The sentences on a recording of these facts."""
    machine = {"system": "L", "architecture": "x", "cpu": "A", "cores": 2, "memory_bytes": 1, "python": "3.11"}
    whole = {"kind": "recording", "started": "2026-01-01T00:00:00Z", "mcpace": "0.1.0", "machine": machine}
    run = Run.model_validate({**whole, "recording": {"events": 20, **facts}, "cases": []})
    return [sentence.replace("\N{NO-BREAK SPACE}", " ") for sentence in sentences(run)]


NOTHING_FOUND = "No cause of lost time was found in 20 events."


@pytest.mark.parametrize(
    ("ended", "sentence"),
    [
        ({"signal": 9, "answered": 3, "unanswered": 1}, "was ended by signal 9 and left 1 request without an answer."),
        ({"code": 0, "answered": 3, "unanswered": 2}, "ended with code 0 and left 2 requests without an answer."),
        ({"code": 3, "answered": 0, "unanswered": 0}, "ended with code 3 before it answered anything."),
    ],
)
def test_a_process_that_ended_too_soon_is_told(ended: dict[str, int], sentence: str) -> None:
    assert told_of(exits=[ended]) == [f"The server's process {sentence}", NOTHING_FOUND]
    assert told_of(exits=[ended] * 5)[3:] == ["So did 2 more.", NOTHING_FOUND]


@pytest.mark.parametrize(
    "ended", [{"signal": 15, "answered": 3}, {"code": 0, "answered": 0}, {"code": 1, "answered": 1}]
)
def test_a_process_that_answered_or_was_not_asked_is_not_told(ended: dict[str, int]) -> None:
    assert told_of(exits=[{**ended, "unanswered": 0}]) == [NOTHING_FOUND]


def method(name: str, succeeded: int, failed: int, unanswered: int = 0) -> dict[str, object]:
    """Facts on the requests of a method."""
    sizes = {"request_bytes": 1, "reply_bytes": 1, "largest_reply_bytes": 1}
    times = {"median_s": 0.002, "slowest_s": 0.002} if succeeded or failed else {}
    counts = {"requests": succeeded + failed + unanswered, "succeeded": succeeded, "failed": failed}
    return {"method": name, **counts, **times, **sizes}


def test_failed_requests_are_told_and_a_refused_discovery_is_none() -> None:
    discover, called = method("server/discover", 0, 1), method("tools/call", 2, 0)
    assert told_of(methods=[called, discover])[0].startswith("The client sent 3 requests; the slowest was tools/call")
    called = method("tools/call", 2, 3)
    told = told_of(methods=[called, discover])
    assert told[0].startswith("The client sent 6 requests, 3 of which failed; the slowest was tools/call")


def test_a_server_that_never_answers_is_told() -> None:
    told = told_of(methods=[method("initialize", 0, 0, unanswered=3)])
    assert told == ["The client sent 3 requests; none was answered.", NOTHING_FOUND]


def test_a_process_for_one_call_is_told_where_its_start_takes_longer() -> None:
    ended = {"code": 0, "answered": 2, "unanswered": 0, "only_call_s": 0.004}
    told = told_of(exits=[ended], starts_s=[0.2])
    assert told[1].startswith("The server's process was started for one tool call, which took 4.00 ms.")
    assert len(told_of(exits=[{**ended, "only_call_s": 0.3}], starts_s=[0.2])) == len(told) - 1
    assert len(told_of(exits=[{**ended, "only_call_s": None}], starts_s=[0.2])) == len(told) - 1


def test_calls_in_turn_are_told_where_calls_at_once_would_save_time() -> None:
    serial = {"calls": 3, "time_s": 2.01, "at_once_s": 1.0}
    told = told_of(serial_calls=serial)
    assert told[0].startswith("The client made 3 tool calls one after another without a pause between them, in 2.01 s:")
    assert told[0].endswith("they would take 1.01 s less.") and told[1:] == [NOTHING_FOUND]
    assert told_of(serial_calls={**serial, "at_once_s": 1.95}) == [NOTHING_FOUND]


def uncertain_run(tool: str, confidence: str, disproof: str, alternatives: list[dict[str, str]]) -> Run:
    """A recording with one finding and one called tool."""
    finding = Finding.model_validate(
        {
            "code": "serial-session",
            "severity": "high",
            "confidence": confidence,
            "cost_s": 1.0,
            "calls": 1,
            "of_calls": 1,
            "disproof": disproof,
            "alternatives": alternatives,
        }
    )
    called = {**method("tools/call", 1, 0), "name": tool}
    case = {"subject": {"sdk": "recording"}, "target": "r", "operation": "call", "trials_s": [1.0], "errors": 0}
    machine = {"system": "L", "architecture": "x", "cpu": "A", "cores": 2, "memory_bytes": 1, "python": "3.11"}
    run = Run.model_validate(
        {
            "kind": "recording",
            "started": "2026-01-01T00:00:00Z",
            "mcpace": "0.1.0",
            "machine": machine,
            "recording": {"events": 20, "methods": [called]},
            "cases": [case],
        }
    )
    run.cases[0].findings.append(finding)
    return run


def test_a_slow_start_is_told_once() -> None:
    run = uncertain_run("look", "high", "start-again-warm", [])
    assert run.recording is not None
    run.recording.starts_s, run.cases[0].trials_s = [1.5], []
    assert sum("start" in sentence for sentence in sentences(run)) == 1
    run.cases[0].findings[0].code = "slow-start"
    assert [sentence for sentence in sentences(run) if "start" in sentence] == sentences(run)[:1]


BLOCKED = {"code": "blocked-event-loop", "decided_by": "call-from-second-session"}


@pytest.mark.parametrize("tool", ["look", "look up; rm -rf ~ '$(x)`"])
@pytest.mark.parametrize(("disproof", "alternatives"), [("call-from-second-session", []), ("drain-replies", [BLOCKED])])
def test_an_uncertain_finding_names_the_live_command_that_decides(
    tool: str, disproof: str, alternatives: list[dict[str, str]]
) -> None:
    last = sentences(uncertain_run(tool, "medium", disproof, alternatives))[-1]
    start = "To decide: "
    assert last.startswith(start)
    assert shlex.split(last.removeprefix(start)) == ["mcpace", "explain", "TARGET", "--tool", tool]
    assert last in page_of(uncertain_run(tool, "low", disproof, alternatives)).head.verdict


@pytest.mark.parametrize("tool", ["--out=x", "a\u202eb", "a\x1b[2Jb", "x" * 1000])
def test_a_hostile_name_of_a_tool_is_no_part_of_the_command(tool: str) -> None:
    run = uncertain_run(tool, "medium", "call-from-second-session", [])
    assert sentences(run)[-1] == "To decide: mcpace explain TARGET"


@pytest.mark.parametrize(("confidence", "disproof"), [("high", "call-from-second-session"), ("low", "drain-replies")])
def test_no_command_is_named_where_it_decides_nothing(confidence: str, disproof: str) -> None:
    assert "To decide" not in verdict(uncertain_run("look", confidence, disproof, []))


def test_each_live_experiment_is_one_of_the_known_experiments() -> None:
    assert set(DISPROOFS) >= LIVE_EXPERIMENTS
