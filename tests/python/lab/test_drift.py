"""Comparison of two listings: tools, promises, results, sizes, and the gate that refuses changes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from mcpace.lab.compare import comparison as lab
from mcpace.lab.compare.drift import compare_listings
from mcpace.lab.compare.gate import run_of_files
from mcpace.lab.tool_schema import result_kinds
from mcpace.report.ci.junit import junit
from mcpace.report.ci.markdown import markdown
from mcpace.report.ci.problems import problems
from mcpace.report.model.drift import Listing, ListingChange
from mcpace.report.model.run import Case, Machine, Run, Subject
from mcpace.report.page.build import page_of
from mcpace.report.terminal import print_run
from mcpace.report.verdict import sentences
from mcpace.report.words.drift import change_words
from support import commands, interop

MACHINE = Machine(system="Linux 6", architecture="x86_64", cpu="A", cores=2, memory_bytes=8 << 30, python="3.11")


def tool(name: str = "search", **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}}, **more}


def listing(*tools: dict[str, Any], revision: str = "2025-11-25") -> Listing:
    return Listing(server="shop", version="1.0", revision=revision, tools=list(tools))


def run(*tools: dict[str, Any], kinds: list[str] | None = None, **more: Any) -> Run:
    own = {"subject": Subject(sdk="mcpace-client"), "target": "t"}
    cases = [
        Case(**own, operation="list", trials_s=[1.0] * 6, listing=listing(*tools)),
        Case(**own, operation="call", tool="search", trials_s=[1.0] * 6, result_kinds=kinds),
    ]
    whole = {"kind": "measure", "started": "2026-01-01T00:00:00Z", "machine": MACHINE, "mcpace": "0.1.0"}
    return Run(**{**whole, **more}, cases=cases)


def words(base: Listing, now: Listing) -> dict[str, str]:
    """The changes in words, each with its level."""
    return {change_words(one): one.level for one in compare_listings(base, now, "t", "t").changes}


def hints(**annotations: bool) -> Listing:
    return listing(tool(annotations={f"{name}Hint": value for name, value in annotations.items()}))


@pytest.mark.parametrize(
    ("base", "now", "expected"),
    [
        (listing(tool(), tool("old")), listing(tool()), {"old: the tool is gone": "breaking"}),
        (listing(tool()), listing(tool(), tool("new")), {"new: the tool is new": "widening"}),
        (listing(tool(), tool("b")), listing(tool("b"), tool()), {}),
        (
            listing(tool(description="A.")),
            listing(tool(description="B.")),
            {"search: description changed: A. → B.": "wording"},
        ),
        (
            listing(tool()),
            listing(tool(), revision="2026-07-28"),
            {"protocol revision: 2025-11-25 → 2026-07-28": "wording"},
        ),
        (listing(tool(outputSchema={})), listing(tool()), {"search: the output schema is gone": "breaking"}),
        (listing(tool()), listing(tool(outputSchema={})), {"search: the output schema is new": "widening"}),
        (hints(idempotent=True), hints(), {"search: no longer idempotent": "breaking"}),
        (hints(), hints(openWorld=False), {"search: reaches no external systems now": "widening"}),
        (hints(readOnly=True), hints(readOnly=True, destructive=True), {}),
        (
            hints(readOnly=True),
            hints(readOnly=False, idempotent=True),
            {"search: no longer read-only": "breaking", "search: may destroy data now": "breaking"},
        ),
        (
            listing(tool()),
            listing(tool(execution={"taskSupport": "required"})),
            {"search: no longer runs as a plain call": "breaking", "search: runs now as a task": "widening"},
        ),
        (
            listing(
                tool(inputSchema={"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}})
            ),
            listing(tool(inputSchema={"properties": {"q": {"enum": ["a"]}}, "required": ["q"]})),
            {
                "search: parameter n is gone (integer)": "breaking",
                "search: parameter q is required now": "breaking",
                'search: parameter q accepts less: string → "a"': "breaking",
            },
        ),
    ],
)
def test_changes_of_a_listing(base: Listing, now: Listing, expected: dict[str, str]) -> None:
    assert words(base, now) == expected


def test_the_sizes_are_those_of_the_whole_listing_and_of_the_tools_that_changed() -> None:
    drift = compare_listings(
        listing(tool(), tool("same")), listing(tool(description="x" * 100), tool("same"), tool("new")), "t", "t"
    )
    whole, *others = drift.sizes
    assert (whole.name, whole.base_bytes) == ("", len(json.dumps([tool(), tool("same")], separators=(",", ":"))))
    assert [(one.name, one.base_bytes is None) for one in others] == [("search", False), ("new", True)]
    assert others[0].now_bytes == (others[0].base_bytes or 0) + 100 + len(',"description":""')


def test_a_listing_of_a_hostile_server_is_compared_as_data() -> None:
    odd: dict[str, Any] = {"name": ["x"], "inputSchema": "no", "annotations": 7, "execution": [], "outputSchema": True}
    drift = compare_listings(listing(odd, {}), listing({**odd, "title": "\x1b[31m"}, {"inputSchema": None}), "t", "t")
    assert drift.changes
    base = run(tool(description="a"))
    now = run(tool(description="\x1b[31m|<script>alert(1)</script>\u202e"))
    result = lab.run_of(base, now, 0.1)
    shown = "\n".join(line.plain for line in print_run.lines(result, 100, coloured=False))
    for text in (shown, markdown(result), junit(result), page_of(result).model_dump_json()):
        assert "\x1b" not in text and "\u202e" not in text
    assert "description changed" in shown
    assert "<script>" not in markdown(result)


def test_kinds_of_results() -> None:
    image = {"type": "image", "mimeType": "image/png", "data": ""}
    text = {"type": "text", "text": "x"}
    assert result_kinds({"content": [text, text, image], "structuredContent": {}}) == [
        "image image/png",
        "structured",
        "text",
    ]
    assert result_kinds({"content": "no"}) == []
    made = lab.compare_runs(
        run(tool(), kinds=["structured", "text"]), run(tool(), kinds=["image image/png", "text"]), 0.1
    )
    [drift] = made.drifts
    assert [(one.level, change_words(one)) for one in drift.changes] == [
        ("breaking", "search: results no longer have content: structured"),
        ("widening", "search: results have new content: image image/png"),
    ]


@pytest.mark.parametrize(
    ("limit", "now", "is_red"),
    [
        ("breaking", [], True),
        ("breaking", [tool(), tool("new")], False),
        ("widening", [tool(), tool("new")], True),
        ("widening", [tool(description="new")], False),
        ("wording", [tool(description="new")], True),
        ("wording", [tool()], False),
        (None, [], False),
    ],
)
def test_a_gate_refuses_changes_from_its_limit(limit: Any, now: list[dict[str, Any]], is_red: bool) -> None:
    result = run_of_files(run(tool()), run(*now), 0.1, limit)
    assert result.comparison is not None
    assert (result.comparison.red, result.comparison.reasons) == (is_red, ["drift"] if is_red else [])
    assert ("refuses" in sentences(result)[0]) == is_red
    assert int(ElementTree.fromstring(junit(result)).get("failures") or 0) == is_red
    assert any(one.level == "error" for one in problems(result)) == is_red
    assert Run.from_json(result.to_json()).comparison == result.comparison


def test_a_run_of_a_release_without_listings_has_no_drift() -> None:
    base = run(tool())
    base.cases[0].listing = None
    assert lab.compare_runs(base, run(), 0.1).drifts == []
    assert '"listing": null' not in base.to_json()


def test_tools_with_the_same_change_share_a_note() -> None:
    several = [tool(f"t{at}") for at in range(9)]
    result = lab.run_of(run(*several), run(), 0.1)
    [table] = page_of(result).tables
    assert table.notes == ["Breaking: t0, t1, t2, t3 and 5 more: the tool is gone."]
    assert sentences(result)[0] == (
        "The listing of the tools has 9 breaking changes (t0, t1, t2, t3 and 5 more: the tool is gone)."
    )


# --- real servers ---

SERVER = """
from mcpace import MCPServer

mcp = MCPServer("shop")

@mcp.tool()
def search({parameters}) -> str:
    "Searches."
    return "found"

mcp.run("stdio")
"""


def test_the_gate_measures_a_server_and_refuses_a_breaking_change(tmp_path: Path) -> None:
    commands_ = []
    for name, parameters in (("before", "q: str, most: int = 3"), ("after", "q: str, most: int")):
        file = tmp_path / f"{name}.py"
        file.write_text(SERVER.format(parameters=parameters))
        commands_.append(f"stdio:{sys.executable} {file}")
    before, after = commands_
    few = ("--trials", 1, "--calls", 1)
    assert commands.run("measure", before, *few, "--out", "before.json", folder=tmp_path).code == 0
    ended = commands.run("gate", after, "--baseline", "before.json", *few, "--out", "gate.json", folder=tmp_path)
    assert ended.code == 1, ended
    assert "mcpace: --trials 1: too few to compare times. Each side needs 5 or more" in ended.stderr
    told = " ".join(ended.stdout.split())
    assert "search: parameter most is required now" in told
    assert "drift" in Run.load(tmp_path / "gate.json").comparison.reasons  # type: ignore[union-attr]
    allowed = commands.run("gate", "gate.json", "--baseline", "before.json", "--drift", "none", folder=tmp_path)
    assert allowed.code == 3, allowed  # one trial is too few to judge times
    assert "search: parameter most is required now" in " ".join(allowed.stdout.split())


def test_an_unknown_level_is_refused_in_one_sentence(tmp_path: Path) -> None:
    ended = commands.run("gate", "profile:echo", "--base", "profile:echo", "--drift", "some", folder=tmp_path)
    assert (ended.code, ended.sentence()) == (2, "--drift takes breaking, widening, wording or none, not 'some'")


@pytest.mark.network
def test_two_releases_of_a_server_of_npm(tmp_path: Path) -> None:
    runs = []
    # The older release lists schemas without members where these packages are newer.
    for version, others in (("0.6.2", ["zod@3.23.8", "zod-to-json-schema@3.23.5"]), ("2026.8.31", [])):
        folder = tmp_path / version
        folder.mkdir()
        package = f"@modelcontextprotocol/server-filesystem@{version}"
        quiet = ("--no-audit", "--no-fund", "--loglevel=error")
        interop.run([interop.needed("npm"), "install", *quiet, package, *others], folder)
        command = f"stdio:node {folder}/node_modules/.bin/mcp-server-filesystem {tmp_path}"
        ended = commands.run(
            "measure", command, "--trials", 1, "--calls", 1, "--out", f"{version}.json", folder=tmp_path
        )
        assert ended.code == 0, ended
        runs.append(Run.load(tmp_path / f"{version}.json"))
    [drift] = lab.compare_runs(*runs, 0.1).drifts
    breaking = [change_words(one) for one in drift.changes if one.level == "breaking"]
    assert breaking == ["read_multiple_files: parameter paths accepts less: array → array, minItems 1"]
    found = {change_words(one) for one in drift.changes if one.level == "widening"}
    assert {"read_text_file: the tool is new", "read_file: read-only now"} <= found
    assert "search_files: parameter excludePatterns is new and optional (array of string)" in found


def test_each_kind_of_change_has_words() -> None:
    for part in ("input", "output"):
        for kind in ("removed", "added", "required", "optional", "narrower", "wider", "changed"):
            change = ListingChange(level="breaking", item="tool", name="t", part=part, kind=kind, place="a.*")  # type: ignore[arg-type]
            assert change_words(change).startswith("t: ")
