"""The sources of evidence about the inside of a server: stacks, spans, and the start of an instrumented program."""

from __future__ import annotations

import gzip
import json
import os
import select
import shlex
import socket
import subprocess
import sys
import time
import tracemalloc
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from mcpace import _core
from mcpace.lab.inside import python_evidence, python_runtime
from mcpace.lab.inside.evidence import InsideEvidence
from mcpace.lab.inside.runtimes import Runtime, command_runtimes
from mcpace.lab.inside.tool_time import tool_time

SPINS = """
import sys, threading, time
def spin():
    while True:
        sum(range(1000))
def rest():
    time.sleep(60)
threading.Thread(target=rest, daemon=True).start()
print(flush=True)
spin()
"""


def kinds(recording: _core.Recording, name: str) -> list[dict[str, Any]]:
    return [event["event"][name] for event in recording.events() if name in event["event"]]


def sampled(seconds: float, *command: str) -> _core.Recording:
    """Samples a program of this process for some time after its first line."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        sampler = _core.StackSampler(os.getpid(), period_s=0.005)
        time.sleep(seconds)
        recording = sampler.stop()
        program.kill()
    return recording


def test_threads_that_run_and_threads_that_wait_are_told_apart() -> None:
    recording = sampled(1.5, sys.executable, "-c", SPINS)
    stacks = {seen["stack"]: [frame["function"] for frame in seen["frames"]] for seen in kinds(recording, "stack-seen")}
    samples = kinds(recording, "stack-sample")
    states: dict[str, list[bool]] = {"spin": [], "rest": []}
    for sample in samples:
        for function, running in states.items():
            if function in stacks[sample["stack"]]:
                running.append(sample["running"])
    assert len(samples) > 40
    assert any(states["spin"])
    # The thread that rests runs once: it waits for the interpreter's lock before it sleeps.
    assert len(states["rest"]) > 20
    assert sum(states["rest"]) <= 2


def test_a_program_that_is_no_python_is_told() -> None:
    recording = sampled(0.3, "sh", "-c", "echo; sleep 60 & wait")
    assert kinds(recording, "stack-sample") == []
    [missing] = kinds(recording, "source-missing")
    assert missing["source"] == "stacks"
    assert "Python" in missing["reason"]


def test_a_program_that_a_server_starts_is_seen_while_it_computes() -> None:
    script = "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; :'; echo; read line"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        watcher = _core.ProcessWatcher(os.getpid(), period_s=0.005)
        server.stdout.readline()
        recording = watcher.stop()
        with pytest.raises(_core.UsageProblem):
            watcher.stop()
        server.kill()
    started = [run for run in kinds(recording, "process-ran") if server.pid in run["ancestors"]]
    assert started
    for run in started:
        assert run["ancestors"] == [server.pid, os.getpid()]
        assert run["program"]


def test_a_process_that_ends_while_it_is_sampled_does_no_harm() -> None:
    sampler = _core.StackSampler(os.getpid(), period_s=0.002)
    # Much memory takes the kernel some time to free, in which the process can be sampled no more.
    ends = "pages = b'x' * 500_000_000; sum(range(10_000_000)); raise SystemExit(7)"
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-S", "-c", ends]) as program:
            # The sampler traces the program, and waitpid of a tracer also returns for stops.
            ended = os.pidfd_open(program.pid)
            assert select.select([ended], [], [], 60)[0]
            os.close(ended)
            assert program.wait() == 7
    sampler.stop()
    with pytest.raises(_core.UsageProblem):
        sampler.stop()


def post(url: str, body: bytes, **headers: str) -> int:
    request = urllib.request.Request(url, body, {name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def span(name: str = "GET") -> bytes:
    now = time.time_ns()
    one = {
        "traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708", "name": name, "kind": 3,
        "startTimeUnixNano": str(now - 5_000_000), "endTimeUnixNano": str(now),
        "attributes": [{"key": "url.full", "value": {"stringValue": "http://h/a?api_key=PLANTED"}}],
    }  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}).encode()


def test_spans_are_received_on_the_clock_of_recordings_and_without_secrets() -> None:
    receiver = _core.SpanReceiver()
    before = time.monotonic_ns()
    assert post(f"{receiver.endpoint}/v1/traces", span(), content_type="application/json; charset=utf-8") == 200
    assert post(f"{receiver.endpoint}/v1/metrics", b"{}", content_type="application/json") == 200
    recording = receiver.stop()
    [event] = recording.events()
    received = event["event"]["span"]
    assert abs(event["at"] - before) < 1_000_000_000
    assert abs(event["at"] - received["began"] - 5_000_000) < 100_000
    assert "PLANTED" not in json.dumps(received)


def test_bodies_in_gzip_are_received() -> None:
    receiver = _core.SpanReceiver()
    headers = {"content_type": "application/json", "content_encoding": "gzip"}
    assert post(f"{receiver.endpoint}/v1/traces", gzip.compress(span()), **headers) == 200
    assert len(kinds(receiver.stop(), "span")) == 1


def test_an_exporter_that_never_ends_its_request_holds_up_nobody() -> None:
    receiver = _core.SpanReceiver()
    address = receiver.endpoint.removeprefix("http://").split(":")
    head = b"POST /v1/traces HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    with socket.create_connection((address[0], int(address[1])), timeout=10) as open_connection:
        open_connection.sendall(head)
        assert post(f"{receiver.endpoint}/v1/traces", span(), content_type="application/json") == 200
        started = time.monotonic()
        recording = receiver.stop()
        assert time.monotonic() - started < 5
    assert len(kinds(recording, "span")) == 1


def test_spans_past_a_million_are_refused_as_a_partial_success() -> None:
    receiver = _core.SpanReceiver()
    one = {"name": "x", "startTimeUnixNano": str(time.time_ns()), "endTimeUnixNano": str(time.time_ns())}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [one] * 100_000}]}]}).encode()
    answers = []
    for _ in range(11):
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{receiver.endpoint}/v1/traces", body, headers)) as reply:
            answers.append(json.load(reply))
    assert answers[:10] == [{}] * 10
    assert answers[10]["partialSuccess"]["rejectedSpans"] == "100000"
    # The spans, and the event that some are missing.
    assert len(receiver.stop()) == 1_000_001


BOMB = gzip.compress(bytes(17 << 20))


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/v1/traces", b"\xff\xff\xff", {"content_type": "application/x-protobuf"}, 400),
        ("/v1/traces", b"[", {"content_type": "application/json"}, 400),
        ("/v1/traces", span(), {"content_type": "text/plain"}, 415),
        ("/v1/traces", span(), {"content_type": "application/json", "origin": "http://evil"}, 403),
        ("/v1/traces", span(), {"content_type": "application/json", "content_encoding": "br"}, 415),
        ("/v1/traces", span(), {"content_type": "application/json", "content_encoding": "gzip"}, 413),
        ("/v1/traces", BOMB, {"content_type": "application/json", "content_encoding": "gzip"}, 413),
        # One byte too many: the receiver reads no further, and a client that still writes may see no answer.
        ("/v1/traces", b" " * ((16 << 20) + 1), {"content_type": "application/json"}, 413),
    ],
)
def test_other_requests_are_refused(path: str, body: bytes, headers: dict[str, str], status: int) -> None:
    receiver = _core.SpanReceiver()
    assert post(receiver.endpoint + path, body, **headers) == status
    recording = receiver.stop()
    assert kinds(recording, "span") == []


def started(environment: dict[str, str], *arguments: str) -> str:
    """The output of a Python program that starts in the instrumented way."""
    own = {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, **environment}
    done = subprocess.run([sys.executable, *arguments], env=own, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_an_overlay_that_cannot_be_loaded_leaves_the_program_as_it_is(tmp_path: Path) -> None:
    report = tmp_path / "report"
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import builtins; builtins.own = 'ran'")
    environment = {
        "PYTHONPATH": f"{python_runtime.START}{os.pathsep}{own}",
        "MCPACE_INSIDE_PYTHONPATH": str(own),
        "MCPACE_INSIDE_OVERLAY": str(tmp_path / "none"),
        "MCPACE_INSIDE_REPORT": str(report),
    }
    printed = started(environment, "-c", "import os, sys; print(own, os.environ['PYTHONPATH'], sys.path[-1])")
    assert printed.split() == ["ran", str(own), str(tmp_path / "none")]
    assert report.read_text().startswith("ModuleNotFoundError: ")
    # Programs that the server starts don't see any of it.
    names = started(
        environment, "-c", "import os; print([name for name in os.environ if name.startswith('MCPACE_INSIDE')])"
    )
    assert names.strip() == "[]"


def test_the_users_own_variables_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_runtime, "ensure_overlay", lambda overlay, say: tmp_path)
    monkeypatch.setenv("PYTHONPATH", "/of/the/shell")
    with InsideEvidence(["python"], print) as evidence:
        variables = dict(evidence.environment([("PYTHONPATH", "/of/the/configuration"), ("KEY", "value")]))
        assert variables["KEY"] == "value"
        assert variables["PYTHONPATH"] == f"{python_runtime.START}{os.pathsep}/of/the/configuration"
        assert variables["MCPACE_INSIDE_PYTHONPATH"] == "/of/the/configuration"
        assert dict(evidence.environment([]))["MCPACE_INSIDE_PYTHONPATH"] == "/of/the/shell"


def test_a_server_that_sends_its_spans_elsewhere_is_left_to_do_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_runtime, "ensure_overlay", lambda overlay, say: tmp_path)
    own = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")]
    with InsideEvidence([sys.executable, "server.py"], print) as evidence:
        assert evidence.environment(own) == own
        recording = _core.SpanReceiver().stop()
        evidence.add_to(recording)
    reasons = [missing["reason"] for missing in kinds(recording, "source-missing")]
    assert any(reason.startswith("OTEL_EXPORTER_OTLP_ENDPOINT is set") for reason in reasons)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    with InsideEvidence([sys.executable, "server.py"], print) as evidence:
        assert evidence.environment([]) == []


def test_a_tool_whose_inside_is_unknown_has_none_unless_a_source_says_why() -> None:
    client = _core.Client([sys.executable, "-c", "import sys; sys.exit(3)"])
    with pytest.raises(_core.ClientProblem):
        client.connect()
    recording = client.recording()
    assert tool_time(recording.explained(), "greet") is None
    recording.add_missing_source("spans", "no overlay")
    found = tool_time(recording.explained(), "greet")
    assert found is not None
    assert (found.calls, found.missing) == (0, ["no overlay"])


def test_a_command_tells_the_runtime_that_it_starts(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("#!/usr/bin/env -S node --enable-source-maps\n")
    script.chmod(0o700)
    own = tmp_path / "own"
    own.write_text(f"#!{own}\n")
    own.chmod(0o700)
    everything = tuple(Runtime)
    cases = {
        "python -m weather": (Runtime.PYTHON,),
        "/usr/bin/python3.11 weather.py": (Runtime.PYTHON,),
        "uvx mcp-server-time": (Runtime.PYTHON,),
        "npx -y @modelcontextprotocol/server-everything": (Runtime.NODE,),
        "env KEY=value node server.js": (Runtime.NODE,),
        "sh -c 'exec java -jar server.jar'": (Runtime.JAVA,),
        str(script): (Runtime.NODE,),
        str(own): everything,
        "no-such-program": everything,
        "sh": everything,
    }
    for command, expected in cases.items():
        assert command_runtimes(shlex.split(command)) == expected, command


def test_stacks_and_pauses_of_any_runtime_become_events() -> None:
    recording = _core.SpanReceiver().stop()
    stacks = [[("search", "/srv/search.js", 7)], [("search", "/srv/search.js", 7), ("main", "/srv/main.js", 1)]]
    recording.add_stacks(12, stacks, [(100, 1, 1, True), (200, 1, 0, False)])
    recording.add_stacks(12, stacks[:1], [(300, 1, 0, True)])
    recording.add_pauses(12, [(150, 180)])
    samples = kinds(recording, "stack-sample")
    assert [sample["stack"] for sample in samples] == [1, 0, 2]
    [pause] = [event for event in recording.events() if "runtime-pause" in event["event"]]
    assert (pause["at"], pause["event"]["runtime-pause"]["began"]) == (180, 150)
    with pytest.raises(_core.UsageProblem):
        recording.add_stacks(12, [], [(1, 1, 0, True)])


COLLECTS = """
import gc, os
kept = [[n] for n in range(200_000)]
gc.collect()
child = os.fork()
gc.collect()
if child:
    os.waitpid(child, 0)
    print(os.getpid(), child)
else:
    os._exit(0)
"""


def test_collections_of_garbage_are_noted_by_each_process_that_forks(tmp_path: Path) -> None:
    prefix = tmp_path / "pauses"
    before = time.monotonic_ns()
    environment = {"PYTHONPATH": str(python_runtime.START), "MCPACE_INSIDE_PAUSES": str(prefix)}
    pids = [int(pid) for pid in started(environment, "-c", COLLECTS).split()]
    pauses = python_evidence.read_pauses(prefix)
    assert sorted(pauses) == sorted(pids)
    for pid, fewest in zip(pids, (2, 1), strict=True):
        assert len(pauses[pid]) >= fewest
        assert all(before < began < ended < time.monotonic_ns() for began, ended in pauses[pid])


def test_files_of_pauses_are_read_as_far_as_they_make_sense(tmp_path: Path) -> None:
    backwards, forwards = python_evidence.PAUSE.pack(9, 3), python_evidence.PAUSE.pack(3, 9)
    (tmp_path / "pauses-12").write_bytes(backwards + forwards + b"torn")
    (tmp_path / "pauses-none").write_bytes(forwards)
    (tmp_path / "pauses-13").write_bytes(b"")
    (tmp_path / f"pauses-{1 << 40}").write_bytes(forwards)
    (tmp_path / "pauses-²").write_bytes(forwards)
    os.mkfifo(tmp_path / "pauses-14")
    (tmp_path / "pauses-15").symlink_to(tmp_path / "pauses-12")
    pipe = os.open(tmp_path / "pauses-14", os.O_RDWR)
    os.write(pipe, forwards)
    assert python_evidence.read_pauses(tmp_path / "pauses") == {12: [(3, 9)]}
    os.close(pipe)


def test_a_process_that_cannot_be_sampled_is_a_missing_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise _core.EnvironmentProblem("no threads are left")

    monkeypatch.setattr(python_runtime, "ensure_overlay", lambda *_: tmp_path)
    monkeypatch.setattr(_core, "StackSampler", refuse)
    instrumentation = python_runtime.PythonInstrumentation(tmp_path, print)
    instrumentation.watch(os.getpid())
    instrumentation.close()
    recording = _core.SpanReceiver().stop()
    instrumentation.add_to(recording)
    [found] = kinds(recording, "source-missing")
    assert found["source"] == "stacks"
    assert found["reason"].endswith("can't be read: EnvironmentProblem: no threads are left")


@pytest.mark.parametrize("size", [None, 1 << 30])
def test_a_report_that_is_no_file_or_endless_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int | None
) -> None:
    monkeypatch.setattr(python_runtime, "ensure_overlay", lambda *_: tmp_path)
    instrumentation = python_runtime.PythonInstrumentation(tmp_path, print)
    report = Path(dict(instrumentation.variables([]))["MCPACE_INSIDE_REPORT"])
    if size is None:
        os.mkfifo(report)
    else:
        report.write_text("ImportError: no module\n")
        os.truncate(report, size)
    tracemalloc.start()
    instrumentation.close()
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()
    recording = _core.SpanReceiver().stop()
    instrumentation.add_to(recording)
    found = [one["reason"] for one in kinds(recording, "source-missing")]
    assert found == ([] if size is None else ["OpenTelemetry can't be loaded in the server: ImportError: no module"])
