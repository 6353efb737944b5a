"""Start-up, first call and later calls are measured and reported separately, on the terminal and on the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpace.lab.clients import repeats
from mcpace.lab.clients.trials_to_cases import Trial
from mcpace.report.model.run import Run
from mcpace.report.page.build import page_of
from mcpace.report.tables import listing_words, tables, tokens_of
from mcpace.report.verdict import verdict
from mcpace.report.words.start import short_name
from support import commands
from support.finding_scenes import patient

# A server that imports for a while, makes its first call slow, and answers the later ones at once.
LAZY = """
import json, sys, time
time.sleep(0.4)
warm = False
TOOLS = [
    {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "status", "inputSchema": {"type": "object", "required": ["path"]}},
]
for asked in map(json.loads, sys.stdin):
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "lazy", "version": "1"}
    elif asked["method"] == "tools/list":
        result = {"tools": TOOLS}
    elif asked["method"] == "tools/call":
        if not warm:
            time.sleep(0.2)
            warm = True
        result = {"content": [{"type": "text", "text": "seen"}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.fixture
def lazy(tmp_path: Path) -> str:
    server = tmp_path / "lazy.py"
    server.write_text(LAZY)
    return f"stdio:{sys.executable} -S {server}"


@pytest.mark.parametrize(
    ("taken", "most", "again"),
    [
        ([], 1, True),
        ([5.0], 1, False),
        ([5.0], 2, True),
        ([5.0, 5.0], 20, False),
        ([0.1] * 3, 20, True),
        ([0.1], 1, False),
    ],
)
def test_slow_tools_are_called_twice_and_quick_ones_more(taken: list[float], most: int, again: bool) -> None:
    assert repeats.wants_another(taken, most) is again


def test_a_trial_is_the_typical_later_call_of_its_session() -> None:
    trial = Trial("call")
    trial.set_repetitions([9.0, 1.0, 3.0, 2.0], [7, 8, 9, 10])
    assert (trial.seconds, trial.first_s, trial.call, trial.known_ids()) == (2.0, 9.0, 10, [7, 8, 9, 10])
    alone = Trial("connect")
    alone.set_repetitions([4.0], [1])
    assert (alone.seconds, alone.first_s, alone.call) == (4.0, None, 1)
    failed = Trial("call", failure="call: no")
    failed.set_repetitions([1.0, 2.0], [1, 2])
    assert (failed.seconds, failed.call, failed.known_ids()) == (None, 2, [1, 2])


@patient
def test_measure_tells_start_up_first_and_later_calls_apart(lazy: str, tmp_path: Path) -> None:
    ended = commands.run("measure", lazy, "--trials", 3, "--out", "run.json", folder=tmp_path)
    assert ended.code == 0, ended.stderr
    run = Run.load(tmp_path / "run.json")
    connect, listing, call = run.cases
    assert connect.starts_process and connect.summary and connect.summary.min_s >= 0.4
    assert len(call.first_s) == len(call.trials_s) == 3
    assert min(call.first_s) >= 0.2 > max(call.trials_s)
    assert listing.listing_tools == 2 and listing.listing_bytes
    told = verdict(run)
    assert "lazy.py takes 4" in told and "to start" in told
    assert "the first of a session 2" in told
    # A start-up below every threshold is reported, but never as a cost of a call.
    assert "No cause of lost time was found in its calls." in told
    assert "What a session waits for" in ended.stdout and "later calls" in ended.stdout
    assert "tokens of it to the model" in " ".join(ended.stdout.split())
    [table] = page_of(run).tables
    assert table.columns[1:] == ["start-up", "first list", "later lists", "first call", "later calls"]
    # The session's recording is complete.
    assert all(finding.confidence_reason != "recording-incomplete" for case in run.cases for finding in case.findings)


@patient
def test_explain_answers_for_a_server_that_takes_its_time_to_start(lazy: str, tmp_path: Path) -> None:
    ended = commands.run("explain", lazy, "--budget", "8s", "--json", folder=tmp_path)
    assert ended.code == 0, ended.stderr
    told = json.loads(ended.stdout)
    tried = {one["code"]: one["verdict"] for one in told["factors"]}
    assert tried["session-per-call"] in ("slower", "left-out") and "listing" in tried
    call, start = told["cases"]
    assert start["starts_process"] and min(start["trials_s"]) >= 0.4
    # Neither the start nor the first call is part of the time of a call.
    assert max(call["trials_s"]) < 0.2 <= min(call["first_s"])
    assert "to start. A call to look takes" in verdict(Run.from_json(ended.stdout))


def test_required_arguments_are_asked_for(lazy: str, tmp_path: Path) -> None:
    for command in ("measure", "explain"):
        ended = commands.run(command, lazy, "--tool", "status", folder=tmp_path)
        assert (ended.code, ended.sentence()) == (2, "status needs path; give --tool and --args"), ended.stderr


def recorded(name: str) -> Run:
    return Run.load(Path(__file__).parents[2] / "fixtures" / "runs" / f"{name}.json")


def started(run: Run, seconds: float, first_s: float | None = None) -> Run:
    case = next(case for case in run.cases if case.operation == "connect")
    case.starts_process, case.target = True, "stdio:/opt/bin/mcp-server-time"
    assert case.summary is not None
    case.summary = case.summary.model_copy(update={"median_s": seconds, "first_s": first_s or seconds})
    return run


@pytest.mark.parametrize(("seconds", "told"), [(0.74, "740"), (1.13, "1.13")])
def test_start_up_is_told_whatever_its_size(seconds: float, told: str) -> None:
    words = verdict(started(recorded("measure"), seconds))
    assert words.startswith(f"mcp-server-time takes {told}") and "to start. A call" in words


def test_a_first_start_that_took_much_longer_is_told_apart() -> None:
    assert ", 5.99\N{NO-BREAK SPACE}s the first time." in verdict(started(recorded("measure"), 0.9, 5.99))


def test_a_run_of_an_older_release_has_neither() -> None:
    run = recorded("measure")
    assert tables(run) == [] and page_of(run).tables == []


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("stdio:/a/b/mcp-server-time --zone UTC", "mcp-server-time"),
        ("stdio:/usr/bin/python3.11 -S /a/server.py", "server.py"),
        ("stdio:npx -y @scope/server-memory", "npx"),
        ("http://127.0.0.1/mcp", "http://127.0.0.1/mcp"),
        ("stdio:it's", "stdio:it's"),
    ],
)
def test_a_command_has_its_programs_name(target: str, name: str) -> None:
    assert short_name(target) == name


def test_the_size_of_a_listing_is_told_and_its_tokens_as_an_estimate() -> None:
    case: Any = recorded("measure").cases[1]
    assert listing_words(case) == ""
    case.listing_bytes, case.listing_tools = 6642, 13
    told = listing_words(case).replace("\N{NO-BREAK SPACE}", " ")
    assert told == (
        "The listing of 13 tools is 6.6 kB of JSON, about 1,700 tokens of a model's context (an estimate, 4 bytes a "
        "token)."
    )
    assert tokens_of(3) == 0


def test_the_tokens_of_the_largest_result_are_told_below_the_waits_of_a_session() -> None:
    run: Any = recorded("measure")
    for case in run.cases:
        case.first_s = case.trials_s[:1]
    assert "result" not in " ".join(tables(run)[0].notes)
    call = next(case for case in run.cases if case.operation == "call")
    call.tool, call.result_tokens = "sea\x1brch", 1203
    assert tables(run)[0].notes[-1] == "The largest result of search takes 1,203 tokens (o200k_base)."
