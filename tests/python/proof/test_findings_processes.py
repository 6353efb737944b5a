"""Memory and processor use of server processes and of the load's own threads, as reported by the commands.

The processes are real and sampled by the lab, so the samples themselves are tested too.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import LIMIT_S, run
from support.finding_scenes import patient
from support.release_proofs import listening
from support.watched_process import explained_codes, record_process

ROUNDS = 400
"""Number of rounds with 8 milliseconds at the server each, so that a dozen samples see them."""

# A server whose memory grows with each session or each request, or whose requests cost what its tools do.
LEAKING = """
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
leaks, tools, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
kept = {}
def leak(key):
    kept[key] = os.urandom(250_000)
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = None
        time.sleep(0.008)
        if leaks == "requests":
            leak(len(kept))
        if leaks in ("sessions", "rebuilds") and asked["method"] == "initialize":
            session = f"s{time.monotonic_ns()}"
            if leaks == "sessions":
                leak(session)
        if leaks == "rebuilds":
            catalogue = [json.dumps({"name": n, "schema": ["x"] * 300}) for n in range(tools)]
        listed = [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(tools)]
        result = {"tools": listed} if asked["method"] == "tools/list" else {}
        body = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": result}).encode()
        self.reply(body, session)
    def do_DELETE(self):
        kept.pop(self.headers["Mcp-Session-Id"], None)
        self.reply(b"", None)
    def reply(self, body, session):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): ...
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def scripted(leaks: str, tools: int = 1) -> list[str]:
    return [sys.executable, "-S", "-c", LEAKING, leaks, str(tools)]


@pytest.mark.proof
@pytest.mark.parametrize(("leaks", "end"), [("sessions", False), ("sessions", True), ("nothing", False)])
@patient
def test_memory_that_rises_with_sessions_that_nobody_ends_is_named(leaks: str, end: bool, tmp_path: Path) -> None:
    command = scripted(leaks if leaks == "sessions" else "rebuilds")
    with listening(command) as (port, pid), record_process(port, pid, tmp_path) as (asking, file):
        asking.begin_sessions(ROUNDS, end=end)
    assert ("session-leak" in explained_codes(file)) is (leaks == "sessions" and not end)


@pytest.mark.parametrize("leaks", ["requests", "nothing"])
@patient
def test_memory_that_rises_with_each_request_is_named(leaks: str, tmp_path: Path) -> None:
    with listening(scripted(leaks)) as (port, pid), record_process(port, pid, tmp_path) as (asking, file):
        asking.repeat_call(ROUNDS)
    assert ("task-leak" in explained_codes(file)) is (leaks == "requests")


@pytest.mark.proof
@pytest.mark.parametrize("rebuilds", ["rebuilds", "nothing"])
@patient
def test_processor_time_that_grows_with_the_tools_is_named(rebuilds: str, tmp_path: Path) -> None:
    files = []
    for tools in (4, 200):
        with listening(scripted(rebuilds, tools)) as (port, pid), record_process(port, pid, tmp_path) as (asking, file):
            asking.ask("tools/list")
            asking.repeat_call(150)
        files.append(file)
    few, many = files
    assert ("rebuilt-per-request" in explained_codes(few, "--beside", many.name)) is (rebuilds == "rebuilds")


def record_lines(folder: Path, program: str, habit: str, requests: list[dict[str, object]]) -> Path:
    """Sends requests to a stdio server through ``mcpace record``, each after the answer to the one before. Returns the
    recording's file."""
    (folder / "server.py").write_text(program)
    upstream = shlex.join([sys.executable, "-S", str(folder / "server.py"), habit])
    file = folder / "recording.jsonl.zst"
    command = [sys.executable, "-m", "mcpace", "record", "--upstream", f"stdio:{upstream}", "--out", str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as recorder:
        assert recorder.stdin is not None and recorder.stdout is not None
        for number, request in enumerate(requests):
            recorder.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **request}) + "\n")
            recorder.stdin.flush()
            assert recorder.stdout.readline()
        recorder.stdin.close()
        assert recorder.wait(LIMIT_S) == 0
    return file


# A server of stdio that keeps a part of each call, or nothing.
STDIO = """
import json, os, sys, time
kept = []
for asked in map(json.loads, sys.stdin):
    time.sleep(0.008)
    if sys.argv[1] == "leaks":
        kept.append(os.urandom(250_000))
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {}}), flush=True)
"""


# A server of stdio that takes 20 ms for each request: it computes all the time, or sleeps.
STEADY = """
import json, sys, time
for asked in map(json.loads, sys.stdin):
    until = time.process_time() + 0.02
    while sys.argv[1] == "computes" and time.process_time() < until:
        pass
    if sys.argv[1] == "sleeps":
        time.sleep(0.02)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": []}}), flush=True)
"""


@pytest.mark.parametrize("habit", ["computes", "sleeps"])
@patient
def test_processor_time_tells_a_server_that_computes_from_one_that_waits(habit: str, tmp_path: Path) -> None:
    file = record_lines(tmp_path, STEADY, habit, [{"method": method} for method in ("tools/list", "ping") * 10])
    done = run("explain", file.name, "--json", folder=tmp_path)
    methods = {one["method"]: one for one in json.loads(done.stdout)["recording"]["methods"]}
    for one in methods.values():
        assert (one["processor_s"] > 0.7 * one["median_s"]) is (habit == "computes"), one
        assert (one["processor_s"] < 0.2 * one["median_s"]) is (habit == "sleeps"), one
    assert ("constant-cost-per-request" in explained_codes(file)) is (habit == "computes")


@patient
def test_the_processor_time_of_a_watched_server_is_known_over_http(tmp_path: Path) -> None:
    with listening(scripted("nothing")) as (port, pid), record_process(port, pid, tmp_path) as (asking, file):
        asking.repeat_call(20)
    done = run("explain", file.name, "--json", folder=tmp_path)
    [method] = [one for one in json.loads(done.stdout)["recording"]["methods"] if one["method"] == "tools/call"]
    # The server sleeps in its tool.
    assert 0 < method["processor_s"] < method["median_s"]


@pytest.mark.parametrize("leaks", ["leaks", "keeps nothing"])
@patient
def test_a_server_over_stdio_is_sampled_unasked(leaks: str, tmp_path: Path) -> None:
    # Somebody's, and none of the recorder's business.
    (tmp_path / "recording.jsonl.zst.part").mkdir(exist_ok=True)
    call: dict[str, object] = {"method": "tools/call", "params": {"name": "work", "arguments": {}}}
    file = record_lines(tmp_path, STDIO, leaks, [call] * ROUNDS)
    assert len(list(tmp_path.iterdir())) == 3
    assert ("task-leak" in explained_codes(file)) is (leaks == "leaks")
