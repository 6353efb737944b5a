"""``mcpace explain FILE``: the findings of a saved recording, on the terminal and as a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpace.lab.errors import UsageProblem
from mcpace.lab.explain import recording_run
from mcpace.report.model.run import Run
from mcpace.report.verdict import verdict
from support.commands import run as mcpace

MILLISECOND = 1_000_000
HEAD = {
    "format": "mcpace.recording/2",
    "instrument": "client",
    "started": "",
    "mcpace": "0.1.0",
    "upstream": "http://x",
}


def written(path: Path, events: list[tuple[float, dict[str, Any]]]) -> Path:
    lines = [HEAD, *({"at": int(at * MILLISECOND), "event": event} for at, event in events)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def exchange(ex: int, at: float, method: str, status: int, content_type: str) -> list[tuple[float, dict[str, Any]]]:
    """A request without a body and its reply, a millisecond later."""
    side, digest = {"side": "back", "ex": ex}, "0" * 16
    asked = [["accept", "text/event-stream"], ["mcp-session-id", "s"]]
    head = {**side, "conn": 1, "method": method, "target": "/mcp", "headers": asked}
    end = {**side, "bytes": 0, "digest": digest, "ending": "complete"}
    return [
        (at, {"request-head": head}),
        (at, {"request-end": {**side, "bytes": 0, "digest": digest}}),
        (at + 1, {"reply-head": {**side, "status": status, "headers": [["content-type", content_type]]}}),
        (at + 2, {"reply-end": end}),
    ]


def looping(path: Path) -> Path:
    """A client that opens its stream every second (python-sdk #3257)."""
    return written(path, [event for n in range(9) for event in exchange(n, n * 1_000, "GET", 200, "text/event-stream")])


def healthy(path: Path) -> Path:
    call = [(0.5, {"call-start": {"call": 1, "operation": "call", "tool": "greet"}})]
    end = [(3.0, {"call-end": {"call": 1, "outcome": "ok"}})]
    return written(path, [*call, *exchange(1, 1, "POST", 200, "application/json"), *end])


def test_a_loop_outside_every_call_is_told(tmp_path: Path) -> None:
    run = recording_run.explain_recording(looping(tmp_path / "loop.jsonl"))
    (case,) = run.cases
    (found,) = case.findings
    assert (found.code, found.calls, found.total_requests) == ("get-loop", 0, 8)
    assert verdict(run).startswith("The client opens the standalone stream again and again")


def test_a_healthy_recording_says_so_and_its_calls_have_ledgers(tmp_path: Path) -> None:
    run = recording_run.explain_recording(healthy(tmp_path / "well.jsonl"))
    (case,) = run.cases
    assert (case.operation, case.trials_s, case.findings) == ("call", [0.0025], [])
    assert case.ledger_s is not None
    assert verdict(run) == "No cause of lost time was found in 6 events."


def test_a_recording_that_was_cut_off_says_so(tmp_path: Path) -> None:
    file = looping(tmp_path / "loop.jsonl")
    file.write_bytes(file.read_bytes()[:-20])
    run = recording_run.explain_recording(file)
    assert verdict(run).endswith("The recording was cut off: what came after is not known.")


def test_what_is_no_recording_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello")
    with pytest.raises(UsageProblem, match="recording"):
        recording_run.explain_recording(tmp_path / "x")
    with pytest.raises(UsageProblem):
        recording_run.explain_recording(looping(tmp_path / "loop.jsonl"), [tmp_path / "gone"])


def test_what_no_instrument_sees_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = healthy(tmp_path / "huge.jsonl")
    text = file.read_text()
    assert '"ex": 1' in text
    file.write_text(text.replace('"ex": 1', f'"ex": {2**63}'))
    done = mcpace("explain", file, folder=tmp_path)
    assert (done.code, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "no instrument sees such a number" in done.stderr


def test_a_name_that_is_no_text_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="UTF-8"):
        recording_run.explain_recording(tmp_path / "\udcff.jsonl")


def test_the_command_shows_saves_and_prints_json(tmp_path: Path) -> None:
    file, out = looping(tmp_path / "loop.jsonl"), tmp_path / "run.json"
    shown = mcpace("explain", file, "--out", out, folder=tmp_path)
    assert shown.code == 0, shown.stderr
    assert "get-loop" in shown.stdout
    assert "could not be measured" not in shown.stdout
    assert Run.load(out).kind == "recording"
    printed = mcpace("explain", file, "--json", folder=tmp_path)
    assert Run.from_json(printed.stdout).cases[0].findings[0].code == "get-loop"


@pytest.mark.parametrize("option", ["--behind", "--beside"])
def test_other_recordings_need_a_recording(option: str, tmp_path: Path) -> None:
    done = mcpace("explain", "profile:simple", option, looping(tmp_path / "loop.jsonl"), folder=tmp_path)
    assert done.code == 2
    assert f"{option} belongs to a saved recording" in done.stderr


def test_the_slowest_warm_call_of_each_operation_is_shown(tmp_path: Path) -> None:
    events: list[tuple[float, dict[str, Any]]] = []
    # The first call is cold, and the slowest of all.
    for number, (begun, took) in enumerate([(0, 90), (100, 5), (200, 20), (300, 20), (400, 4)], start=1):
        start = {"call-start": {"call": number, "operation": "call", "tool": "greet"}}
        end = {"call-end": {"call": number, "outcome": "ok"}}
        events += [(begun, start), *exchange(number, begun + 1, "POST", 200, "application/json"), (begun + took, end)]
    run = recording_run.explain_recording(written(tmp_path / "calls.jsonl", events))
    (case,) = run.cases
    assert case.waterfall is not None
    assert (case.waterfall.trial, case.waterfall.total_ms) == (2, 20.0)


def test_events_far_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    # Further apart than is looked ahead while reading: the file is read whole then.
    late = exchange(9_999, 0, "POST", 200, "application/json")
    many = [event for n in range(3_000) for event in exchange(n, 10 + n, "POST", 200, "application/json")]
    run = recording_run.explain_recording(written(tmp_path / "late.jsonl", [*many, *late]))
    assert run.recording is not None
    assert (run.recording.events, run.recording.cut_off) == (4 * 3_001, False)
