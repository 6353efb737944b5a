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
from support.commands import COMMAND

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


def test_results_that_the_recorder_cut_have_bytes_and_no_tokens(tmp_path: Path, server: str) -> None:
    sizes = sizes_of(explain_recording(record(tmp_path, server, "--body-limit", "2000", counts=(10, 12_000))))
    say = sizes["say"]
    assert (say.results, say.cut, say.counted) == (2, 1, 1)
    assert say.largest is not None and say.largest < 20
    assert say.largest_bytes is not None and say.largest_bytes > 60_000


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
