"""When the instrument was measured, not the target; a client that is slow with long lines; each with its control."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpace import MCPServer, _core
from mcpace.lab.load import generator_limited
from mcpace.report.model.run import Case, Subject
from support.core_server import LIMIT_S
from support.finding_scenes import Endpoint, body, findings_by_code, patient, reply, serve_app, start_recorder
from support.http_client import HttpClient
from support.python_server import served as serving

LONG_WAIT_S = 120
"""For programs that work as hard as this machine lets them."""


async def quick(_: dict[str, Any]) -> None:
    return None


@contextmanager
def recorder(upstream: str, file: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """``mcpace record`` as a process of its own, and its port."""
    command = [
        sys.executable,
        "-m",
        "mcpace",
        "record",
        "--upstream",
        upstream,
        "--out",
        str(file),
        "--body-limit",
        "0",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        told = process.stderr.readline()
        yield process, int(told.split("http://127.0.0.1:")[1].split("/")[0])
    finally:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT_S)
        process.stderr.close()


@pytest.mark.parametrize("stopped", [True, False])
@patient
def test_a_recorder_that_is_kept_from_running_says_that_the_machine_was_busy(tmp_path: Path, stopped: bool) -> None:
    """Stops the recorder repeatedly for a while, which simulates a busy machine."""
    file = tmp_path / "recording"
    over = threading.Event()

    def hold_up(process: subprocess.Popen[str]) -> None:
        while not over.is_set():
            process.send_signal(signal.SIGSTOP)
            over.wait(0.06)
            process.send_signal(signal.SIGCONT)
            over.wait(0.03)

    stamps = []
    with serve_app(Endpoint(quick)) as url, recorder(url, file) as (process, port):
        holding = threading.Thread(target=hold_up, args=(process,))
        if stopped:
            holding.start()
        wire = HttpClient(port)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            begun = time.monotonic_ns()
            assert "result" in wire.ask("tools/call", {"name": "work", "arguments": {}})
            stamps.append((begun, time.monotonic_ns()))
        over.set()
        if stopped:
            holding.join()
        wire.close()
    recording = _core.Recording.load(str(file))
    for begun, end in stamps:
        recording.add_call("call", "work", begun, end)
    findings = findings_by_code(recording, machine=True)
    assert ("noisy-run" in findings) is stopped
    assert "recorder-limited" not in findings
    if stopped:
        assert findings["noisy-run"]["context"]["times"] >= 5


def large(content: bytes) -> Any:
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        asked = json.loads(await body(receive))
        result = b"{}" if asked["method"] == "ping" else content
        answer = b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (asked["id"], result)
        await reply(send, 200, answer, "application/json")

    return app


def items(number: int) -> bytes:
    """A result that names a secret, which the recorder therefore takes apart and puts together anew."""
    return b'{"content":[],"token":"x","items":[%s]}' % b",".join([b'{"a":0}'] * number)


@pytest.mark.parametrize("number", [pytest.param(1_800_000, marks=pytest.mark.proof), 1])
@patient
def test_a_recorder_that_has_too_much_to_read_limits_what_it_measures(number: int) -> None:
    """The recorder parses a reply after forwarding it, while the next call arrives. The client doesn't parse replies.

    The recorder doesn't parse replies of 16 MiB or more either.
    """
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "work", "arguments": {}}})
    with serve_app(large(items(number))) as url, start_recorder(url) as record:
        wire, stamps = record.wire(), []
        for _ in range(12):
            begun = time.monotonic_ns()
            assert wire.send("POST", "/mcp", asked, **kinds)[0] == 200
            stamps.append((begun, time.monotonic_ns()))
        # Answered when the last reply is read: a recorder that is told to end has three seconds.
        wire.ask("ping")
        recording = record.finish()
    for begun, end in stamps:
        recording.add_call("call", "work", begun, end)
    findings = findings_by_code(recording, machine=True)
    assert ("recorder-limited" in findings) is (number > 1), findings
    assert "noisy-run" not in findings


# A client of stdio that puts a line together anew with each piece that it reads, as typescript-sdk's did, or once.
CLIENT = """
import json, os, subprocess, sys, time
anew, command = sys.argv[1] == "anew", sys.argv[2:]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
out = server.stdout.fileno()
def line():
    if not anew:
        return server.stdout.readline()
    whole = b""
    while b"\\n" not in whole:
        whole = bytes(bytearray(whole + os.read(out, 1024)))
    return whole
for number, size in enumerate((10, 200_000, 300_000, 500_000, 900_000, 2_000_000)):
    params = {"name": "payload", "arguments": {"bytes": size}}
    begun = time.monotonic_ns()
    asked = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    server.stdin.write(json.dumps(asked).encode() + b"\\n")
    server.stdin.flush()
    answer = line()
    print(begun, time.monotonic_ns(), len(answer), flush=True)
server.stdin.close()
server.wait()
"""
SERVER = """
import json, sys
for asked in map(json.loads, sys.stdin):
    text = "x" * asked["params"]["arguments"]["bytes"]
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"text": text}}), flush=True)
"""


@pytest.mark.parametrize("way", ["anew", "once"])
@patient
def test_a_client_that_joins_a_line_anew_with_each_piece_is_named(tmp_path: Path, way: str) -> None:
    file = tmp_path / "recording"
    server = [sys.executable, "-c", SERVER]
    record = "import sys; from mcpace import _core; sys.exit(_core.record_stdio(sys.argv[2:], sys.argv[1], 0))"
    command = [sys.executable, "-c", CLIENT, way, sys.executable, "-c", record, str(file), *server]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG_WAIT_S, check=True, env={**os.environ})
    recording = _core.Recording.load(str(file))
    for begun, end, size in (map(int, line.split()) for line in done.stdout.splitlines()):
        assert size > 10
        recording.add_call("call", "payload", begun, end)
    findings = findings_by_code(recording)
    assert ("superlinear-line" in findings) is (way == "anew"), findings
    if way == "anew":
        assert findings["superlinear-line"]["context"]["lines"] == 5


def work() -> str:
    return ""


# Tests that run beside this one hold a load up, too: the control is shown where it has the machine to itself.
@pytest.mark.parametrize("stopped", [True, pytest.param(False, marks=pytest.mark.proof)])
@patient
def test_a_load_that_is_kept_from_running_is_its_generators(tmp_path: Path, stopped: bool) -> None:
    """The command itself, held up by hand as a busy machine would."""
    over = threading.Event()

    def hold_up(process: subprocess.Popen[str]) -> None:
        while not over.is_set():
            process.send_signal(signal.SIGSTOP)
            over.wait(0.09)
            process.send_signal(signal.SIGCONT)
            over.wait(0.03)

    made: MCPServer[Any] = MCPServer("shop")
    made.tool()(work)
    with serving(made) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        words = ["load", url, "--rate", "50", "--duration", "3s", "--warm-up", "0s", "--mix", "work=1", "--json"]
        command = [sys.executable, "-m", "mcpace", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        holding = threading.Thread(target=hold_up, args=(process,))
        if stopped:
            holding.start()
        try:
            out, said = process.communicate(timeout=LONG_WAIT_S)
        finally:
            over.set()
            if stopped:
                holding.join()
            process.kill()
    assert out, said
    found_of_it = {finding["code"] for case in json.loads(out)["cases"] for finding in case["findings"]}
    assert ("generator-limited" in found_of_it) is stopped


def load(*, saturated: bool, reason: str | None = None) -> Case:
    engine = {"threads": 1, "cpu_s": 9.0, "busy": 0.99, "late_p99_s": 0.004, "saturated": saturated, "reason": reason}
    counts = dict.fromkeys(("intended", "begun", "dropped", "late", "unfinished"), 0)
    facts = {"ended": "done", "model": {}, "elapsed_s": 10.0, "measured_s": 9.0, "warm_up_s": 1.0, "engine": engine}
    subject = Subject(sdk="load", version="")
    return Case.model_validate(
        {"subject": subject, "target": "t", "operation": "call", "saturated": saturated, "load": facts | counts}
    )


def test_a_load_that_its_generator_limited_is_named() -> None:
    assert generator_limited.limited_finding(load(saturated=False)) is None
    for reason in generator_limited.REASONS:
        finding = generator_limited.limited_finding(load(saturated=True, reason=reason))
        assert finding is not None
        assert finding.code == "generator-limited"
        assert finding.advice
        assert (finding.cost_s > 0) is (reason == "late-starts")
