"""Lines of JavaScript and TypeScript: calls that the text of a file tells, and source maps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpace.lab.inside.javascript_calls import JavaScriptCalls
from mcpace.lab.inside.node_stacks import EvidenceLimits, SampledStacks
from mcpace.lab.inside.source_maps import SourceMaps, parse_source_map

TEXT = """\
import { readFileSync } from 'node:fs';
const tool = async ({ city }) => {
  // query() is no call, and "query()" is none.
  const text = `query(${city})`;
  const file = readFileSync(city);
  return { text, rows: await pool.query(text) };
};
const other = () => {
  pool.query('1');
  pool.query('2');
};
const short = [1].map((id) => pool.query(id));
pool.query('3');
"""

# TypeScript: line 1 of a.js is line 3 of a.ts, and line 2 is line 5.
MAP: dict[str, Any] = {"version": 3, "sources": ["../src/a.ts"], "names": [], "mappings": "AAEA,IAAI;AAEJ"}


@pytest.mark.parametrize(
    ("begin", "callee", "line"),
    [
        ((2, 13), "query", 6),
        ((2, 13), "Pool.query", 6),
        ((2, 13), "readFileSync", 5),
        ((12, 22), "query", 12),
        ((8, 14), "query", None),
        ((2, 13), "uery", None),
        ((2, 13), "(anonymous)", None),
        ((2, 13), "absent", None),
        ((99, 0), "query", None),
    ],
)
def test_the_text_of_a_function_tells_the_line_of_a_call(
    tmp_path: Path, begin: tuple[int, int], callee: str, line: int | None
) -> None:
    file = tmp_path / "server.mjs"
    file.write_text(TEXT)
    assert JavaScriptCalls().line_of_call(str(file), *begin, callee) == line


SCANS = """
import sys
from mcpace.lab.inside.javascript_calls import JavaScriptCalls
print(JavaScriptCalls().line_of_call(sys.argv[1], 1, 0, "query"))
"""


@pytest.mark.parametrize("repeated", ["/*a", "`\\", "'\n\\'", "\\'", '\\"', "\\`", "//"])
def test_a_hostile_text_is_scanned_in_linear_time(tmp_path: Path, repeated: str) -> None:
    file = tmp_path / "server.js"
    for end in ("", "\\"):
        file.write_text("() => { query('1');" + repeated[-1] + repeated * 300_000 + end)
        # A scan in quadratic time takes an hour.
        done = subprocess.run(
            [sys.executable, "-c", SCANS, str(file)], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout == "1\n"


def test_tokens_without_an_end_take_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "server.js"
    for begin in ("/*", "`", "`\\"):
        file.write_text("() => {\n" + begin + " query();")
        assert JavaScriptCalls().line_of_call(str(file), 1, 0, "query") is None
    file.write_text("() => {\n text.match(/\\'/); query('1'); }")
    assert JavaScriptCalls().line_of_call(str(file), 1, 0, "query") == 2


def test_files_are_read_for_a_limited_time(tmp_path: Path) -> None:
    (tmp_path / "a.js.map").write_text(json.dumps({**MAP, "sources": ["a.ts"]}))
    file = tmp_path / "a.js"
    file.write_text("one();\ntwo();\n//# sourceMappingURL=a.js.map\n")
    call = {"functionName": "tool", "url": file.as_uri(), "lineNumber": 0, "columnNumber": 0}
    nodes = [{"id": 1, "callFrame": call, "children": [2]}, {"id": 2, "callFrame": {**call, "functionName": "two"}}]
    for source_s, innermost in ((5.0, str(tmp_path / "a.ts")), (0.0, str(file))):
        limits = EvidenceLimits(source_s=source_s)
        stacks = SampledStacks("", limits)
        stacks.add_profile({"nodes": nodes, "startTime": 1, "samples": [2], "timeDeltas": [1]})
        assert [stack[0][1] for stack in stacks.numbers] == [innermost]
        assert (limits.source_s < source_s) == (source_s > 0)


def test_a_file_that_cannot_be_read_tells_no_line(tmp_path: Path) -> None:
    for file in (tmp_path, tmp_path / "none", Path("/dev/zero"), Path("a\0b")):
        assert JavaScriptCalls().line_of_call(str(file), 1, 0, "query") is None


def test_a_map_beside_the_file_tells_the_line_of_its_source(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "a.js.map").write_text(json.dumps(MAP))
    file = tmp_path / "dist" / "a.js"
    file.write_text("one();\ntwo();\n//# sourceMappingURL=a.js.map\n")
    source = str(tmp_path / "src" / "a.ts")
    maps = SourceMaps()
    assert [maps.original(str(file), line, 9) for line in (1, 2, 3, 0)] == [(source, 3), (source, 5), None, None]
    call = {"functionName": "tool", "url": file.as_uri(), "lineNumber": 0, "columnNumber": 0}
    nodes = [{"id": 1, "callFrame": call, "positionTicks": [{"line": 2, "ticks": 1}]}]
    stacks = SampledStacks("")
    stacks.add_profile({"nodes": nodes, "startTime": 1, "samples": [1], "timeDeltas": [1]})
    assert list(stacks.numbers) == [(("tool", source, 5),)]


def test_the_column_tells_the_source_of_a_function_in_a_bundle_of_one_line(tmp_path: Path) -> None:
    # Columns 0 and 15 are lines 1 and 5 of the source.
    (tmp_path / "a.js.map").write_text(json.dumps({**MAP, "sources": ["a.ts"], "mappings": "AAAA,eAIA"}))
    file = tmp_path / "a.js"
    file.write_text("let f=()=>g(1);let g=()=>h();\n//# sourceMappingURL=a.js.map\n")
    call = {"url": file.as_uri(), "lineNumber": 0}
    ticks = {"positionTicks": [{"line": 1, "ticks": 1}]}
    nodes = [
        {"id": 1, "callFrame": {**call, "functionName": "g", "columnNumber": 21}, "children": [2]},
        {"id": 2, "callFrame": {**call, "functionName": "h", "columnNumber": 21}, **ticks},
    ]
    stacks = SampledStacks("")
    stacks.add_profile({"nodes": nodes, "startTime": 1, "samples": [2], "timeDeltas": [1]})
    source = str(tmp_path / "a.ts")
    assert list(stacks.numbers) == [(("h", source, 5), ("g", source, 5))]


def test_a_map_may_name_files_and_lines_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    file = tmp_path / "a.js"
    file.write_text("one();\n//# sourceMappingURL=a.js.map")
    for source, far in (("loop/a.ts", "A"), ("\0.ts", "A"), ("a.ts", "gggggggggE")):
        (tmp_path / "a.js.map").write_text(json.dumps({**MAP, "sources": [source], "mappings": f"AA{far}A"}))
        call = {"functionName": "tool", "url": file.as_uri(), "lineNumber": 0, "columnNumber": 0}
        stacks = SampledStacks("")
        nodes = [{"id": 1, "callFrame": call}]
        stacks.add_profile({"nodes": nodes, "startTime": 1, "samples": [1], "timeDeltas": [1]})
        [[(_, name, line)]] = stacks.numbers
        assert (name, line) == (str(tmp_path / source), 1 if far == "A" else (1 << 32) - 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"sources": 1}',
        json.dumps({**MAP, "mappings": "!"}),
        json.dumps({**MAP, "mappings": "AAFF"}),
        json.dumps({**MAP, "mappings": "g" * 100}),
    ],
)  # fmt: skip
def test_a_damaged_map_is_none(tmp_path: Path, text: str) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        parse_source_map(text, tmp_path)
    (tmp_path / "a.js.map").write_text(text)
    file = tmp_path / "a.js"
    file.write_text("one();\n//# sourceMappingURL=a.js.map")
    assert SourceMaps().original(str(file), 1, 0) is None
