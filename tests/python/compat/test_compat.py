"""Servers of other SDKs, as written, migrated and adopted: a fixed part of `make compat`, with bounded time.

Our own servers cover each feature; the source distributions give what the time allows.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
HARNESS = ROOT / "tests" / "compat"
LINES = ("mcp-2", "mcp-1", "fastmcp-4", "fastmcp-3")
MIGRATED = ("mcp-2", "mcp-1", "fastmcp-4")
"""mcpace.fastmcp has FastMCP 4's behaviours: servers of FastMCP 3 get what changed with FastMCP 4."""
LIMIT_S = 1500
SDIST_EVERY = {"mcp-2": 7, "mcp-1": 7, "fastmcp-4": 22, "fastmcp-3": 22}
"""One file of the source distribution in so many is measured. FastMCP's have three times as many files;
none of this part starts a program of another package."""
SDIST_S = 45
SDIST_LEAST = 8
"""Number of objects that are measured within the time even on a busy machine."""
REVISIONS = ("--revision", "2025-11-25", "--revision", "2026-07-28")

sys.path.insert(0, str(HARNESS))

from compare import ABSENT, Spot, differences, documented  # noqa: E402
from probes import Transcript  # noqa: E402
from values import least, mistaken  # noqa: E402


def compat(line: str, *words: str, out: Path) -> dict[str, Any]:
    """Runs the harness for a line, and returns the line's part of the report."""
    command = [sys.executable, str(HARNESS / "run.py"), "--line", line, "--out", str(out), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    causes = subprocess.run(
        [sys.executable, str(HARNESS / "causes.py"), str(out / "compat.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{causes.stdout[:8000]}\n{done.stderr[-3000:]}"
    report: dict[str, Any] = json.loads((out / "compat.json").read_text())[line]
    return report


@pytest.mark.network
@pytest.mark.parametrize("line", LINES)
def test_our_servers_answer_the_same_or_as_documented(line: str, tmp_path: Path) -> None:
    ways = ("swapped", "adopted") if line in MIGRATED else ("adopted",)
    report = compat(line, "--own", *(word for way in ways for word in ("--way", way)), *REVISIONS, out=tmp_path)
    assert {way for measured in report["objects"] for way in measured["ways"]} == set(ways)


@pytest.mark.network
@pytest.mark.parametrize(("line", "every"), SDIST_EVERY.items())
def test_servers_of_the_source_distribution_do_when_adopted(line: str, every: int, tmp_path: Path) -> None:
    words = ("--way", "adopted", "--every", str(every), "--seconds", str(SDIST_S), "--revision", "2025-11-25")
    report = compat(line, *words, out=tmp_path)
    assert len(report["objects"]) >= SDIST_LEAST


def test_every_documented_difference_has_its_place_in_the_documents() -> None:
    for entry in documented():
        name, _, anchor = entry.anchor.partition("#")
        headings = re.findall(r"^#+ (.+)$", (ROOT / name).read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in anchors, entry.name
        assert entry.lines, entry.name


def test_answers_are_compared_without_what_moves() -> None:
    left, right = Transcript(), Transcript()
    left.answers["call"] = {"result": {"text": "at 2026-01-02T03:04:05Z", "list": [{"name": "a", "x": 1}], "n": 1}}
    right.answers["call"] = {"result": {"text": "at 2026-02-02T03:04:06Z", "list": [{"name": "a", "x": 2}], "n": 1.0}}
    left.messages = [("call", {"method": "notifications/message", "params": {"data": "a"}})]
    assert differences(left, right) == [
        Spot("call", "result.list[0].x", "1", "2"),
        Spot(
            "call",
            "messages.notifications/message",
            '{"method": "notifications/message", "params": {"data": "a"}}',
            ABSENT,
        ),
    ]


def test_arguments_fit_their_schema() -> None:
    schema = {
        "type": "object",
        "$defs": {
            "Inner": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}
        },
        "properties": {
            "inner": {"$ref": "#/$defs/Inner"},
            "text": {"type": "string", "minLength": 6},
            "more": {"enum": ["a"]},
        },
        "required": ["inner", "text"],
    }
    assert least(schema, everything=False) == {"inner": {"n": 3}, "text": "textxx"}
    assert least(schema, everything=True) == {"inner": {"n": 3}, "text": "textxx", "more": "a"}
    assert mistaken(schema) == {"inner": 3.5, "text": "textxx"}
