"""Timers that programs wait for: the functions that stand for ``asyncio.sleep``, ``time.sleep`` and ``setTimeout``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcpace import _core
from mcpace.lab.inside import node_evidence, node_runtime
from mcpace.lab.inside.node_evidence import read_program
from mcpace.lab.inside.node_runtime import NodeInstrumentation
from mcpace.lab.inside.node_stacks import EvidenceLimits
from mcpace.lab.inside.process_timers import ProcessTimers
from mcpace.lab.inside.python_evidence import STACK, TIMER, read_timers
from mcpace.lab.inside.python_runtime import START

ENDS_MEANWHILE = """
import sitecustomize, sys

class Ended(sitecustomize.RecordFile):
    "Another thread ends the file after the first look at it."

    @property
    def memory(self):
        memory, self.kept = self.kept, None
        return memory

    @memory.setter
    def memory(self, value):
        self.kept = value

file = Ended(sys.argv[1], sitecustomize.TIMER, 4)
assert [file.add(1, 2, 3), file.add(1, 2, 3)] == [0, None]
"""

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")

WAITS = """
import asyncio, inspect, os, pickle, threading, time
from asyncio import sleep as imported

class Retry:
    pause = time.sleep

async def helper():
    await imported(0.02)

async def tool():
    assert await asyncio.sleep(0.01, result="woken") == "woken"
    await helper()
    await asyncio.sleep(0)
    try:
        await asyncio.wait_for(asyncio.sleep(60), 0.01)
    except asyncio.TimeoutError:
        pass

def thread():
    Retry().pause(0.03)

asyncio.run(tool())
worker = threading.Thread(target=thread)
worker.start()
worker.join()
time.sleep(0)
assert inspect.iscoroutinefunction(asyncio.sleep)
assert pickle.loads(pickle.dumps(time.sleep)) is time.sleep
assert (time.sleep.__name__, time.sleep.__module__) == ("sleep", "time")
child = os.fork()
time.sleep(0.04)
if child:
    os.waitpid(child, 0)
    print(os.getpid(), child, [name for name in os.environ if name.startswith("MCPACE_INSIDE")])
"""


def fired(waits: ProcessTimers) -> list[tuple[list[str], float]]:
    """The functions of each timer that the program's own code waited for, and the time in seconds."""
    own = {
        number: [function for function, file, _ in stack if file in ("<string>", "server.mjs")]
        for number, stack in waits.stacks.items()
    }
    return [(own[stack], (ended - began) / 1e9) for began, ended, stack in waits.timers]


def test_a_file_that_another_thread_ends_raises_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDS_MEANWHILE, str(tmp_path / "times")]
    subprocess.run(command, check=True, timeout=30, env={**os.environ, "PYTHONPATH": str(START)})


def test_sleeps_of_python_are_noted_with_the_stack_that_waits(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(START), "MCPACE_INSIDE_TIMERS": str(tmp_path / "timers")}
    before = time.monotonic_ns()
    done = subprocess.run(
        [sys.executable, "-c", WAITS], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    after = time.monotonic_ns()
    parent, child, names = done.stdout.split(maxsplit=2)
    assert (done.stderr, names.strip()) == ("", "[]")
    found = read_timers(tmp_path / "timers")
    assert sorted(found) == sorted([int(parent), int(child)])
    expected = [["tool", "<module>"], ["helper", "tool", "<module>"], ["thread"], ["<module>"]]
    assert [functions for functions, _ in fired(found[int(parent)])] == expected
    for (_, took_s), least_s in zip(fired(found[int(parent)]), (0.01, 0.02, 0.03, 0.04), strict=True):
        # A process may be kept from running, and never wakes early.
        assert least_s * 0.99 <= took_s, found
    assert [functions for functions, _ in fired(found[int(child)])] == [["<module>"]]
    for waits in found.values():
        assert all(before < began < ended < after for began, ended, _ in waits.timers)
        functions = {stack[0][0] for stack in waits.stacks.values()}
        assert functions == ({"asyncio.sleep", "sleep"} if len(waits.stacks) > 1 else {"sleep"})
    for file in tmp_path.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600


def test_files_of_timers_are_read_as_far_as_they_make_sense(tmp_path: Path) -> None:
    good = [["forecast", "/srv/weather.py", 7], ["\ud800", "/srv/x.py", 1 << 40]]
    stacks: list[Any] = [{}, 3, [["f", "g"]], [["f", "g", "h"]], good, "x" * 20_000]
    texts = [json.dumps(stack).encode() for stack in stacks]
    (tmp_path / "timers-stacks-12").write_bytes(b"".join(STACK.pack(text) for text in texts) + b"torn")
    records = [(3, 9, 4), (9, 3, 4), (3, 9, 1), (3, 9, 2), (3, 9, 3), (3, 9, 5), (5, 6, 1 << 63)]
    (tmp_path / "timers-times-12").write_bytes(b"".join(TIMER.pack(*record) for record in records) + b"torn")
    (tmp_path / "timers-times-13").write_bytes(TIMER.pack(1, 2, 0))
    os.mkfifo(tmp_path / "timers-stacks-13")
    recording = _core.SpanReceiver().stop()
    for pid, waits in read_timers(tmp_path / "timers").items():
        waits.add_to(recording, pid)
    events = [event["event"] for event in recording.events()]
    seen = {event["stack-seen"]["stack"]: event["stack-seen"]["frames"] for event in events if "stack-seen" in event}
    [timer] = [event["timer-fired"] for event in events if "timer-fired" in event]
    assert (timer["pid"], timer["began"]) == (12, 3)
    first = {"function": "forecast", "file": "/srv/weather.py", "line": 7}
    assert seen[timer["stack"]] == [first, {"function": "?", "file": "/srv/x.py", "line": (1 << 32) - 1}]


NODE_WAITS = """
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import assert from 'node:assert';

async function tool() {
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(await wait(20, 'woken'), 'woken');
  await helper();
  clearTimeout(setTimeout(() => {}, 15));
  setTimeout(() => {}, 15).unref();
  const putOff = setTimeout(() => {}, 40);
  await wait(10);
  putOff.refresh();
  await new Promise((resolve) => setTimeout(resolve, 60));
  await assert.rejects(wait(1e6, 0, { signal: AbortSignal.timeout(5) }));
  await new Promise((resolve) => setTimeout(resolve, 0));
}

async function helper() {
  assert.equal(await promisify(setTimeout)(30, 'woken'), 'woken');
}

await tool();
assert.deepEqual([setTimeout.name, typeof setTimeout(() => {}, 1).ref], ['setTimeout', 'function']);
assert.throws(() => setTimeout('no function', 5), TypeError);
assert.equal(Error.stackTraceLimit, 10);
"""


@needs_node
def test_timers_of_node_are_noted_with_the_stack_that_set_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_runtime, "ensure_overlay", lambda *_: "")
    instrumentation = NodeInstrumentation(tmp_path, print)
    program = tmp_path / "server.mjs"
    program.write_text(NODE_WAITS)
    environment = {**os.environ, **dict(instrumentation.variables([])), "MCPACE_INSIDE_NODE_PACKAGES": ""}
    done = subprocess.run(
        ["node", str(program)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    [file] = (tmp_path / "node").iterdir()
    waits = read_program(file, EvidenceLimits()).waits
    named = {
        number: [(function, line) for function, place, line in stack if place == str(program)]
        for number, stack in waits.stacks.items()
    }
    innermost = [named[stack][0] for _, _, stack in waits.timers]
    assert innermost == [("tool", 7), ("tool", 8), ("helper", 21), ("tool", 13), ("tool", 15), ("(anonymous)", 25)]
    for (began, ended, _), least_ms in zip(waits.timers, (10, 20, 30, 10, 60, 1), strict=True):
        # Timers of Node.js have whole milliseconds.
        assert ended - began >= (least_ms - 1) * 1_000_000
    recording = _core.SpanReceiver().stop()
    instrumentation.close()
    instrumentation.add_to(recording)
    assert len([event for event in recording.events() if "timer-fired" in event["event"]]) == 6


NODE_SETS_MANY = """
const pause = () => new Promise((resolve) => setTimeout(resolve, 2));
await Promise.all(Array.from({ length: 20_000 }, pause));
async function late() { await pause(); }
await late();
"""


@needs_node
def test_a_program_of_node_that_sets_too_many_timers_reports_no_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_runtime, "ensure_overlay", lambda *_: "")
    instrumentation = NodeInstrumentation(tmp_path, print)
    (tmp_path / "server.mjs").write_text(NODE_SETS_MANY)
    environment = {**os.environ, **dict(instrumentation.variables([])), "MCPACE_INSIDE_NODE_PACKAGES": ""}
    subprocess.run(["node", str(tmp_path / "server.mjs")], env=environment, timeout=60, check=True)
    [file] = (tmp_path / "node").iterdir()
    program = read_program(file, EvidenceLimits())
    assert program.missing == [("stacks", "Node.js: later timers are left out: the program sets too many")]
    functions = {function for stack in program.waits.stacks.values() for function, _, _ in stack}
    assert "pause" in functions
    assert "late" not in functions


def test_timers_of_node_are_read_as_far_as_they_make_sense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_evidence, "MOST_TIMERS", 2)
    frames = [["", "file:///srv/my%20server.mjs", 7, 3], ["forecast", "/srv/x.js", 1 << 40, -1]]
    lines: list[Any] = [
        {"program": {"pid": 7, "script": ""}},
        {"timers": [[5, 9, 0], [9, 5, 0], [5, 1 << 60, 0], [5, 9, 1]], "timerStacks": [[0, frames]]},
        {"timers": [[5, 9, 0]], "timerStacks": [[1, 3]]},
        {"timers": [["x", 9, 0]], "timerStacks": []},
        {"timers": 3, "timerStacks": []},
        {"timers": [[6, 9, 0]], "timerStacks": []},
    ]
    (tmp_path / "node-7.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    recording = _core.SpanReceiver().stop()
    read_program(tmp_path / "node-7.jsonl", EvidenceLimits()).add_to(recording)
    [seen, timer] = [event["event"] for event in recording.events()]
    assert timer["timer-fired"] == {"pid": 7, "stack": seen["stack-seen"]["stack"], "began": 5000}
    [first, second] = seen["stack-seen"]["frames"]
    assert first == {"function": "(anonymous)", "file": "/srv/my server.mjs", "line": 7}
    assert second == {"function": "forecast", "file": "/srv/x.js", "line": (1 << 32) - 1}
