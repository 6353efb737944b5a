"""Tokens and bytes of the results of tools in a recording, of a real server behind the recorder."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpace.client import SyncClient
from mcpace.lab.explain import result_sizes
from mcpace.lab.explain.recording_run import explain_recording
from mcpace.report import tables
from mcpace.report.model.run import Run
from mcpace.report.model.tokens import ResultTokens
from mcpace.report.terminal.tables import lines as print_tables
from mcpace.report.words.findings import explanation_for
from support.commands import COMMAND
from support.commands import run as command

SERVER = """
from mcpace import MCPServer

mcp = MCPServer("words")

@mcp.tool()
def say(count: int) -> str:
    return "word " * count

@mcp.tool()
def greet(name: str) -> str:
    return f"Hello, {name}!"

mcp.run("stdio")
"""


@pytest.fixture
def server(tmp_path: Path) -> str:
    (tmp_path / "server.py").write_text(SERVER)
    return shlex.join([sys.executable, str(tmp_path / "server.py")])


def record(folder: Path, server: str, *words: str, counts: tuple[int, ...]) -> Path:
    file = folder / "recording.jsonl.zst"
    with SyncClient([*COMMAND, "record", "--upstream", f"stdio:{server}", "--out", str(file), *words]) as client:
        client.call_tool("greet", {"name": "you"})
        for count in counts:
            client.call_tool("say", {"count": count})
    return file


def sizes_of(run: Run) -> dict[str, ResultTokens]:
    assert run.recording is not None
    methods = run.recording.methods
    return {one.name: one.result_tokens for one in methods if one.name is not None and one.result_tokens is not None}


def test_the_results_of_each_tool_have_tokens_and_bytes(tmp_path: Path, server: str) -> None:
    run = explain_recording(record(tmp_path, server, counts=(10, 200, 3_000)))
    sizes = sizes_of(run)
    say = sizes["say"]
    assert (say.results, say.counted, say.cut) == (3, 3, 0)
    assert say.median is not None and 200 <= say.median <= 202
    assert say.largest is not None and 3_000 <= say.largest <= 3_002
    assert say.median_bytes is not None and say.largest_bytes is not None
    assert 1_000 < say.median_bytes < 3_000 and 15_000 < say.largest_bytes < 32_000
    assert sizes["greet"].largest == 4
    [table] = [one for one in tables.tables(run) if one.title == "Results of tools"]
    assert [row[0] for row in table.rows] == ["say", "greet"]
    shown = [line.plain for line in print_tables(run, 80)]
    assert any("counted" in line for line in shown) and max(map(len, shown)) <= 80
    assert not [finding for case in run.cases for finding in case.findings if finding.code == "huge-result"]


def test_a_huge_result_of_a_recording_is_named(tmp_path: Path, server: str) -> None:
    run = explain_recording(record(tmp_path, server, "--body-limit", "1000000", counts=(12_000,)))
    [finding] = [finding for case in run.cases for finding in case.findings if finding.code == "huge-result"]
    assert finding.context["tool"] == "say" and 11_990 <= finding.context["tokens"] <= 12_010


def test_a_result_that_the_recorder_cut_has_the_tokens_of_its_recorded_part_at_least(
    tmp_path: Path, server: str
) -> None:
    run = explain_recording(record(tmp_path, server, counts=(10, 30_000)))
    say = sizes_of(run)["say"]
    assert (say.results, say.cut, say.counted) == (2, 1, 2)
    assert say.largest is not None and 12_000 < say.largest < 13_200
    assert say.largest_bytes is not None and say.largest_bytes > 150_000
    [table] = [one for one in tables.tables(run) if one.title == "Results of tools"]
    [row] = [row for row in table.rows if row[0] == "say"]
    assert row[1] == "2, 1 cut" and row[4] == f"≥ {say.largest:,}"
    assert any("lower bounds" in note and "--body-limit" in note for note in table.notes)
    [finding] = [finding for case in run.cases for finding in case.findings if finding.code == "huge-result"]
    assert f"at least {say.largest:,} tokens" in explanation_for(finding)


def test_a_gate_does_not_pass_a_result_that_the_recorder_cut(tmp_path: Path, server: str) -> None:
    file = record(tmp_path, server, counts=(30_000,))
    assert command("explain", file, "--out", "run.json", folder=tmp_path).code == 0
    for limit, say in ((100, "above the limit"), (20_000, "unknown whether it is within the limit")):
        gated = command("gate", "run.json", "--max-result-tokens", limit, folder=tmp_path)
        shown = " ".join(gated.stdout.split())
        assert gated.code == 1 and "The largest result of greet at" in shown, gated.stderr
        assert "The largest result of say at recording.jsonl.zst has at least 1" in shown
        assert say in shown and "--body-limit" in shown
    whole = record(tmp_path, server, "--body-limit", "1000000", counts=(30_000,))
    assert command("explain", whole, "--out", "run.json", folder=tmp_path).code == 0
    passed = command("gate", "run.json", "--max-result-tokens", 31_000, folder=tmp_path)
    assert passed.code == 0 and "within the limit of 31,000" in " ".join(passed.stdout.split()), passed.stdout


def test_a_result_without_any_text_has_bytes_and_no_tokens(tmp_path: Path, server: str) -> None:
    say = sizes_of(explain_recording(record(tmp_path, server, "--body-limit", "0", counts=(10,))))["say"]
    assert (say.results, say.cut, say.counted, say.largest) == (1, 1, 0, None)
    assert say.largest_bytes is not None and say.largest_bytes > 50


@pytest.mark.parametrize("is_id_first", [True, False])
def test_the_id_of_a_cut_answer_may_be_behind_its_result(is_id_first: bool) -> None:
    text = '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"one tw'
    facts = {
        "messages": [{"kind": "result", "id": "7"}],
        "body": {"text": text if is_id_first else text.replace('"id":7,', ""), "cut": True},
    }
    [(_, result, is_whole)] = result_sizes._answers(facts)
    assert (result, is_whole) == ({"content": [{"type": "text", "text": "one tw"}]}, False)


def test_a_sample_of_many_results_has_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_sizes, "MOST_RESULTS", 10)
    results: list[tuple[int, dict[str, Any]]] = [(size, {}) for size in range(1_000)]
    results[437] = (5_000, {})
    sample = result_sizes._sample(results)
    assert len(sample) <= 10 and sample[0][0] == 5_000
    # The others come from the whole recording.
    assert sample[1][0] < 112 and sample[-1][0] > 780


def test_a_recording_that_is_too_large_is_not_read(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_sizes, "MOST_EVENTS", 3)
    assert sizes_of(explain_recording(record(tmp_path, server, counts=(1,)))) == {}
