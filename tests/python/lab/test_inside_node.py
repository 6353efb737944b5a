"""Programs of Node.js that are looked into: their files of evidence, and the stacks of V8's profiles."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpace import _core
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.inside import node_evidence, node_runtime
from mcpace.lab.inside.node_evidence import package_folder, read_program
from mcpace.lab.inside.node_runtime import NodeInstrumentation
from mcpace.lab.inside.node_stacks import LONGEST_FUNCTION, EvidenceLimits, SampledStacks

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")

BURN = "function burn(ms) { const end = performance.now() + ms; while (performance.now() < end) Math.sqrt(2); }\n"


def node(number: int, function: str, children: list[int], url: str = "", line: int = 0, **more: Any) -> dict[str, Any]:
    call = {"functionName": function, "scriptId": "1", "url": url, "lineNumber": line, "columnNumber": 0}
    return {"id": number, "callFrame": call, "children": children, **more}


def profile(*samples: int) -> dict[str, Any]:
    ticks = [{"line": 12, "ticks": 1}, {"line": 13, "ticks": 1}]
    nodes = [
        node(1, "(root)", [2, 3, 4, 5]),
        node(2, "(idle)", []),
        node(3, "(program)", []),
        node(4, "(garbage collector)", []),
        node(5, "", [6, 7, 8], "file:///srv/my%20server.mjs", 9, positionTicks=ticks),
        node(6, "spawnSync", [], "node:child_process", 700),
        node(7, "query", [], "/srv/node_modules/pg/lib/client.js", 400),
        node(8, "forecast", [], "/l/node_modules/@a/server/dist/index.js", 1),
    ]
    return {
        "nodes": nodes,
        "startTime": 1000,
        "endTime": 9000,
        "samples": list(samples),
        "timeDeltas": [10] * len(samples),
    }


def samples_of(stacks: SampledStacks) -> list[tuple[int, list[tuple[str, str, int]], bool]]:
    by_number = {number: stack for stack, number in stacks.numbers.items()}
    return [(at, list(by_number[number]), runs) for at, _, number, runs in stacks.samples]


def test_a_profile_becomes_samples_with_lines_and_states() -> None:
    stacks = SampledStacks("/l/node_modules/@a/server/")
    stacks.add_profile(profile(5, 5, 2, 7, 4, 6, 3, 8))
    own = ("(anonymous)", "/srv/my server.mjs", 10)
    library = ("query", "/srv/node_modules/pg/lib/client.js", 401)
    assert samples_of(stacks) == [
        (1_010_000, [("(anonymous)", "/srv/my server.mjs", 12)], True),
        (1_020_000, [("(anonymous)", "/srv/my server.mjs", 13)], True),
        (1_030_000, [], False),
        (1_040_000, [library, own], True),
        (1_050_000, [("(garbage collector)", "node:native", 1), library, own], True),
        (1_060_000, [("spawnSync", "node:child_process", 701), own], False),
        (1_070_000, [("(program)", "node:native", 1)], True),
        (1_080_000, [("forecast", "@a/server/dist/index.js", 2), own], True),
    ]


@pytest.mark.parametrize(("column", "seen"), [(13, [2, 3, 1, 1]), (0, [2, 3, 4, 1])])
def test_a_line_of_an_inlined_function_is_not_taken_for_one_of_the_outer_functions(
    column: int, seen: list[int], tmp_path: Path
) -> None:
    file = tmp_path / "server.mjs"
    file.write_text("function burn() {\n  return 1;\n}\nfunction other() {}\n")
    ticks = [{"line": line, "ticks": 1} for line in (2, 3, 4, 139)]
    # The code of the module itself begins at column 0.
    burn = node(2, "burn", [], str(file), 0, positionTicks=ticks)
    burn["callFrame"]["columnNumber"] = column
    stacks = SampledStacks("")
    stacks.add_profile({**profile(2, 2, 2, 2), "nodes": [node(1, "(root)", [2]), burn]})
    assert [stack[0][2] for _, stack, _ in samples_of(stacks)] == seen


@pytest.mark.parametrize(
    "change",
    [
        {"samples": [5, 99], "timeDeltas": [1, 1]},
        {"samples": [5]},
        {"startTime": -(10**30)},
        {"startTime": "x"},
        {"nodes": [{"id": 5}]},
        {"nodes": None},
    ],
)
def test_what_is_no_profile_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        SampledStacks("").add_profile({**profile(5, 5), **change})


def test_hostile_profiles_stay_bounded() -> None:
    stacks = SampledStacks("")
    cycle = [node(1, "a" * 10_000, [2]), node(2, "b\x1b[2J", [1])]
    deep = [node(number, f"f{number}", [number + 1]) for number in range(10, 3_000)] + [node(3_000, "last", [])]
    for nodes, number in ((cycle, 1), (deep, 3_000)):
        stacks.add_profile({"nodes": nodes, "startTime": 1, "samples": [number], "timeDeltas": [1]})
    for stack in stacks.numbers:
        assert len(stack) <= 96
        assert all(len(function) <= LONGEST_FUNCTION for function, _, _ in stack)


def test_a_file_that_is_damaged_gives_its_good_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_evidence, "LONGEST_LINE", 100_000)
    now = time.time_ns()
    span = {
        "traceId": "1" * 32, "spanId": "2" * 16, "name": "GET", "kind": 3, "startTimeUnixNano": str(now),
        "endTimeUnixNano": str(now + 1), "attributes": [{"key": "url.full", "value": {"stringValue": "http://h/?token=PLANTED"}}],
    }  # fmt: skip
    good: list[Any] = [
        {"program": {"pid": 7, "node": "v20.0.0", "script": "/l/node_modules/@a/server/dist/index.js"}},
        {"profile": profile(5, 2)},
        {"pauses": [[5, 9], [9, 5], [-1, 2], [1, 1 << 60]]},
        {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]},
        {"missing": {"source": "spans", "reason": "no module"}},
        {"poolWork": [[5, 9, "files"], [9, 5, "files"], [5, 9, "\x1b[2J"]]},
    ]  # fmt: skip
    bad = [
        {"profile": 3},
        {"pauses": [["x"]]},
        {"missing": {"source": "secrets"}},
        [],
        7,
        {"poolWork": 5},
        {"x": "y" * 200_000},
    ]
    lines = [json.dumps(line) for pair in zip(good, [*bad], strict=False) for line in pair]
    file = tmp_path / "node-7.jsonl"
    file.write_text("\n".join([*lines, "[" * 50_000, '{"profile": {"nodes": [']))
    program = read_program(file, EvidenceLimits())
    recording = _core.SpanReceiver().stop()
    program.add_to(recording)
    text = json.dumps(recording.events())
    names = [next(iter(event["event"])) for event in recording.events()]
    assert sorted(names) == [
        "pool-work",
        "runtime-pause",
        "source-missing",
        "span",
        "stack-sample",
        "stack-sample",
        "stack-seen",
        "stack-seen",
    ]
    assert "PLANTED" not in text
    assert (program.pid, program.stacks.package) == (7, "/l/node_modules/@a/server/")


@pytest.mark.parametrize(
    "line",
    [
        '{"profile": {"nodes": [], "startTime": Infinity}}',
        '{"missing": {"source": "spans", "reason": "\\ud800"}}',
        json.dumps({"profile": {**profile(1), "nodes": [node(1, "\ud800", [], "/srv/\udc00.js", 1 << 40)]}}),
        json.dumps({"profile": {**profile(1), "nodes": [node(1, "f", [], "/srv/x.js", -(10**30))]}}),
        json.dumps({"resourceSpans": "\ud800"}),
    ],
)
def test_a_damaged_line_harms_no_other(tmp_path: Path, line: str) -> None:
    file = tmp_path / "node-7.jsonl"
    first = json.dumps({"program": {"pid": 7, "script": ""}})
    file.write_text("\n".join([first, line, json.dumps({"profile": profile(7)}), ""]))
    recording = _core.SpanReceiver().stop()
    read_program(file, EvidenceLimits()).add_to(recording)
    assert "query" in functions([event["event"] for event in recording.events()])


@pytest.mark.parametrize(
    "first", ["[" * 50_000, '{"program": {"pid": Infinity, "script": ""}}', "\0", '{"program": 1}']
)
def test_a_file_without_a_first_line_gives_its_other_lines(tmp_path: Path, first: str) -> None:
    file = tmp_path / "node-7.jsonl"
    file.write_text(f'{first}\n{{"pauses": [[1, 2]]}}\n')
    assert read_program(file, EvidenceLimits()).pauses == [(1000, 2000)]


def test_evidence_that_no_recording_takes_is_a_missing_source(tmp_path: Path) -> None:
    program = read_program(tmp_path / "none", EvidenceLimits())
    program.stacks.numbers[(("f\ud800", "/srv/x.js", 1),)] = 0
    program.pauses.append((-2, -1))
    recording = _core.SpanReceiver().stop()
    program.add_to(recording)
    missing = [event["event"]["source-missing"] for event in recording.events()]
    assert [one["source"] for one in missing] == ["stacks", "pauses"]
    assert missing[0]["reason"].startswith("evidence of process 0 of Node.js can't be read: UnicodeEncodeError: ")


def test_a_folder_that_cannot_be_read_is_a_missing_source(
    instrumentation: NodeInstrumentation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("too much")

    (tmp_path / "node" / "node-1.jsonl").write_text("{}\n")
    monkeypatch.setattr(node_runtime, "read_program", fail)
    reasons = [event["source-missing"]["reason"] for event in evidence(instrumentation)]
    assert reasons == ["npm is missing", "evidence of Node.js can't be read: MemoryError: too much"]


def test_the_files_of_all_programs_share_one_limit(tmp_path: Path) -> None:
    file = tmp_path / "node-1.jsonl"
    first = json.dumps({"program": {"pid": 1, "script": ""}})
    pauses = [json.dumps({"pauses": [[number, number + 1]]}) for number in range(10_000)]
    file.write_text("\n".join([first, *pauses]))
    assert read_program(tmp_path / "none", EvidenceLimits()).pauses == []
    limits = EvidenceLimits(bytes=10_000)
    assert 100 < len(read_program(file, limits).pauses) < 1000
    assert read_program(file, limits).pauses == []


def test_the_samples_of_all_programs_share_one_limit() -> None:
    limits = EvidenceLimits(samples=3, stack_frames=2)
    first, second = SampledStacks("", limits), SampledStacks("", limits)
    first.add_profile(profile(5, 7, 5))  # The second stack has two frames.
    second.add_profile(profile(2, 5))
    assert [len(first.samples), len(second.samples)] == [2, 1]


def test_evidence_that_is_too_large_is_told(
    instrumentation: NodeInstrumentation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_runtime, "EvidenceLimits", lambda: EvidenceLimits(bytes=100))
    (tmp_path / "node" / "node-1.jsonl").write_text("[]\n" * 100)
    reasons = [event["source-missing"]["reason"] for event in evidence(instrumentation)]
    assert [reason for reason in reasons if "MiB of evidence" in reason] == [node_runtime.TOO_LARGE]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_what_is_no_file_of_evidence_is_not_opened(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "node-1.jsonl")
    assert read_program(tmp_path / "node-1.jsonl", EvidenceLimits()).pauses == []


def test_the_package_of_an_installed_program_is_its_own() -> None:
    assert package_folder("/l/node_modules/@a/server/dist/index.js") == "/l/node_modules/@a/server/"
    assert package_folder("/l/node_modules/x/node_modules/y/i.js") == "/l/node_modules/x/node_modules/y/"
    assert package_folder("/srv/server.js") == package_folder("") == package_folder("node_modules") == ""


@pytest.fixture
def instrumentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeInstrumentation:
    """Without the packages of OpenTelemetry, in a folder whose name has a space and a quotation mark."""

    def refuse(*_: object) -> Path:
        raise EnvironmentProblem("npm is missing")

    place = tmp_path / 'with "space'
    shutil.copytree(node_runtime.SOURCES, place)
    monkeypatch.setattr(node_runtime, "START", place / "start.cjs")
    monkeypatch.setattr(node_runtime, "ensure_overlay", refuse)
    return NodeInstrumentation(tmp_path, print)


def environment(instrumentation: NodeInstrumentation, **own: str) -> dict[str, str]:
    return {**os.environ, **own, **dict(instrumentation.variables(list(own.items())))}


def started(instrumentation: NodeInstrumentation, *command: str, **own: str) -> str:
    done = subprocess.run(
        command, env=environment(instrumentation, **own), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return done.stdout


def evidence(instrumentation: NodeInstrumentation) -> list[dict[str, Any]]:
    instrumentation.close()
    instrumentation.close()
    recording = _core.SpanReceiver().stop()
    instrumentation.add_to(recording)
    return [event["event"] for event in recording.events()]


def functions(events: list[dict[str, Any]]) -> set[str]:
    return {frame["function"] for event in events if "stack-seen" in event for frame in event["stack-seen"]["frames"]}


@needs_node
def test_a_program_sees_its_own_variables_and_its_children_are_not_instrumented(
    instrumentation: NodeInstrumentation, tmp_path: Path
) -> None:
    program = tmp_path / "server.cjs"
    child = (
        "process.stdout.write(JSON.stringify([process.env.NODE_OPTIONS, "
        "Object.keys(process.env).filter((name) => name.startsWith('MCPACE_INSIDE'))]))"
    )
    program.write_text(
        f"const code = {json.dumps(child)}; eval(code); "
        "require('child_process').execFileSync('node', ['-e', code], {stdio: 'inherit'})"
    )
    printed = started(instrumentation, "node", str(program), NODE_OPTIONS="--max-old-space-size=300")
    assert printed == '["--max-old-space-size=300",[]]' * 2
    events = evidence(instrumentation)
    assert [event for event in events if "source-missing" in event] == [
        {"source-missing": {"source": "spans", "reason": "npm is missing"}}
    ]


@needs_node
def test_a_launcher_passes_the_instrumentation_on(instrumentation: NodeInstrumentation, tmp_path: Path) -> None:
    package = tmp_path / "place" / "node_modules" / "my-server"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "my-server", "version": "1.0.0", "bin": "./server.js"}')
    (package / "server.js").write_text(f"#!/usr/bin/env node\n{BURN}burn(300); console.log('served')\n")
    (package / "server.js").chmod(0o700)
    (package.parent / ".bin").mkdir()
    (package.parent / ".bin" / "my-server").symlink_to("../my-server/server.js")
    (tmp_path / "place" / "package.json").write_text('{"name": "place", "dependencies": {"my-server": "1.0.0"}}')
    done = subprocess.run(
        ["npx", "--offline", "my-server"], env=environment(instrumentation), cwd=tmp_path / "place",
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "served\n"
    assert len(list((tmp_path / "node").iterdir())) == 1
    assert "burn" in functions(evidence(instrumentation))


@needs_node
@pytest.mark.parametrize("end", ["", "process.exit(0)", "process.kill(process.pid, 'SIGKILL')"])
def test_evidence_survives_the_end_of_the_process(
    instrumentation: NodeInstrumentation, tmp_path: Path, end: str
) -> None:
    program = tmp_path / "server.mjs"
    program.write_text(f"{BURN}burn(300); setTimeout(() => {{ {end} }}, 1000)")
    done = subprocess.run(
        ["node", str(program)], env=environment(instrumentation), capture_output=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (b"", b"")
    assert done.returncode == (-signal.SIGKILL if "SIGKILL" in end else 0)
    [file] = (tmp_path / "node").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    began = time.monotonic_ns()
    events = evidence(instrumentation)
    assert "burn" in functions(events)
    assert all(event["stack-sample"]["pid"] > 0 for event in events if "stack-sample" in event), began


@needs_node
def test_samples_and_pauses_are_on_the_clock_of_recordings(
    instrumentation: NodeInstrumentation, tmp_path: Path
) -> None:
    program = tmp_path / "server.mjs"
    program.write_text(f"{BURN}const kept = []; for (let n = 0; n < 3e6; n++) kept.push({{ n }}); burn(200);")
    before = time.monotonic_ns()
    started(instrumentation, "node", str(program))
    after = time.monotonic_ns()
    instrumentation.close()
    recording = _core.SpanReceiver().stop()
    instrumentation.add_to(recording)
    for kind in ("stack-sample", "runtime-pause"):
        times = [event["at"] for event in recording.events() if kind in event["event"]]
        assert len(times) > 3
        assert before < min(times) <= max(times) < after, kind


@needs_node
def test_files_that_the_program_awaits_are_told(instrumentation: NodeInstrumentation, tmp_path: Path) -> None:
    program = tmp_path / "server.mjs"
    program.write_text(
        "import { readdir } from 'node:fs/promises';"
        f"const end = Date.now() + 300; while (Date.now() < end) await readdir({json.dumps(str(tmp_path))});"
        "await new Promise((resolve) => setTimeout(resolve, 300));"
    )
    began = time.monotonic_ns()
    started(instrumentation, "node", str(program))
    took = time.monotonic_ns() - began
    instrumentation.close()
    recording = _core.SpanReceiver().stop()
    instrumentation.add_to(recording)
    work = [(event["event"]["pool-work"], event["at"]) for event in recording.events() if "pool-work" in event["event"]]
    assert {own["work"] for own, _ in work} == {"files"}
    # It reads for 300 ms, and waits for a timer afterwards.
    assert 0.1e9 < sum(at - own["began"] for own, at in work) < took - 0.25e9


@needs_node
def test_evidence_that_cannot_be_written_leaves_the_program_as_it_is(instrumentation: NodeInstrumentation) -> None:
    instrumentation.close()  # The folder is gone.
    assert started(instrumentation, "node", "-p", "1 + 1") == "2\n"


def test_a_command_that_starts_no_node_is_told(instrumentation: NodeInstrumentation) -> None:
    started(instrumentation, sys.executable, "-c", "")
    reasons = [event["source-missing"]["reason"] for event in evidence(instrumentation)]
    assert "no program of Node.js ran; Bun and Deno are not looked into" in reasons
