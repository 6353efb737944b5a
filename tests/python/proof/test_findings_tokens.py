"""Findings that counts of tokens prove, at a real server over stdio: each is named, and its near miss is not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mcpace.report.model.run import Finding, Run
from support.commands import run

SERVER = """
import sys
from typing import Annotated
from pydantic import Field
from mcpace import MCPServer

mcp = MCPServer("words")
size, copies = int(sys.argv[1]), int(sys.argv[2])
Long = Annotated[str, Field(description="a path of a file " * 20, min_length=1, max_length=4096)]

def told(number):
    def tool(path: Long) -> str:
        return path
    tool.__name__ = f"read_{number}"
    return tool

for number in range(copies):
    mcp.add_tool(told(number))

@mcp.tool(description="word " * size)
def say(count: int) -> str:
    return "word " * count

mcp.run("stdio")
"""


def findings_of(folder: Path, size: int, copies: int, result: int = 1) -> dict[str, Finding]:
    (folder / "server.py").write_text(SERVER)
    target = f"stdio:{sys.executable} {folder}/server.py {size} {copies}"
    words = ("--tool", "say", "--args", json.dumps({"count": result}), "--trials", 1, "--calls", 2)
    ended = run("measure", target, *words, "--out", "run.json", folder=folder)
    assert ended.code == 0, ended.stderr
    measured = Run.load(folder / "run.json")
    return {finding.code: finding for case in measured.cases for finding in case.findings}


@pytest.mark.parametrize("is_verbose", [True, False])
def test_a_tool_of_many_tokens_is_named(is_verbose: bool, tmp_path: Path) -> None:
    found = findings_of(tmp_path, 2_000 if is_verbose else 1_000, 1)
    assert ("verbose-tool" in found) is is_verbose
    if is_verbose:
        context = found["verbose-tool"].context
        assert (context["tool"], context["verbose_tools"]) == ("say", 1)
        assert 1_990 <= context["description_tokens"] <= 2_010


@pytest.mark.parametrize("is_huge", [True, False])
def test_a_result_of_many_tokens_is_named(is_huge: bool, tmp_path: Path) -> None:
    found = findings_of(tmp_path, 1, 1, result=12_000 if is_huge else 8_000)
    assert ("huge-result" in found) is is_huge
    if is_huge:
        assert 11_990 <= found["huge-result"].context["tokens"] <= 12_010


@pytest.mark.parametrize("repeats", [True, False])
def test_a_schema_that_tools_repeat_is_named(repeats: bool, tmp_path: Path) -> None:
    found = findings_of(tmp_path, 1, 16 if repeats else 4)
    assert ("duplicate-schema" in found) is repeats
    if repeats:
        context = found["duplicate-schema"].context
        assert context["tools"] == 16
        assert 1_000 < context["repeated_tokens"] < context["listing_tokens"]
        # Parts of a repeated part are not counted again.
        assert context["repeated_tokens"] == 15 * context["tokens"]
