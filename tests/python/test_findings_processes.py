"""What server processes and the load's own threads do with memory and processors, seen by the commands that users have.

Real processes, sampled by the lab: a leak that is no leak at all would be the samples' own invention.
"""

from __future__ import annotations

import http.client
import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from commands import LIMIT_S, run
from proving import listening
from shown import patient

ROUNDS = 400
"""Of 8 milliseconds at the server, so that a dozen samples see it."""

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


class Asking:
    """Requests on one kept connection to a recorder."""

    def __init__(self, port: int, path: str = "/mcp") -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        self.path = path
        self.number = 0

    def ask(self, method: str, session: str | None = None, **params: Any) -> http.client.HTTPResponse:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        return self.send("POST", json.dumps(message), session)

    def send(self, method: str, body: str | None, session: str | None) -> http.client.HTTPResponse:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= {"Mcp-Session-Id": session} if session else {}
        self.connection.request(method, self.path, body, headers)
        reply = self.connection.getresponse()
        reply.read()
        assert reply.status < 300, reply.status
        return reply

    def sessions(self, number: int, *, end: bool) -> None:
        client = {"name": "test", "version": "0"}
        for _ in range(number):
            begun = self.ask("initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo=client)
            session = begun.headers["Mcp-Session-Id"]
            assert session
            if end:
                self.send("DELETE", None, session)

    def calls(self, number: int, tool: str = "echo") -> None:
        for _ in range(number):
            self.ask("tools/call", name=tool, arguments={"text": "x"})


@contextmanager
def watched(port: int, pid: int, folder: Path, path: str = "/mcp") -> Iterator[tuple[Asking, Path]]:
    """``mcpace record --watch`` before a server, and who asks through it."""
    file = folder / f"{port}.jsonl.zst"
    upstream = f"http://127.0.0.1:{port}{path}"
    words = ["record", "--upstream", upstream, "--out", str(file), "--watch", str(pid), "--body-limit", "0"]
    with subprocess.Popen([sys.executable, "-m", "mcpace", *words], stderr=subprocess.PIPE, text=True) as recorder:
        assert recorder.stderr is not None
        try:
            told = recorder.stderr.readline()
            yield Asking(int(told.split("http://127.0.0.1:")[1].split("/")[0]), path), file
        finally:
            recorder.send_signal(signal.SIGINT)
            recorder.communicate(timeout=LIMIT_S)


def explained(file: Path, *words: object) -> set[str]:
    """The codes that ``mcpace explain FILE`` says."""
    done = run("explain", file.name, "--json", *words, folder=file.parent)
    assert done.code == 0, done.stderr
    return {finding["code"] for case in json.loads(done.stdout)["cases"] for finding in case["findings"]}


def scripted(leaks: str, tools: int = 1) -> list[str]:
    return [sys.executable, "-S", "-c", LEAKING, leaks, str(tools)]


@pytest.mark.parametrize(("leaks", "end"), [("sessions", False), ("sessions", True), ("nothing", False)])
@patient
def test_memory_that_rises_with_sessions_that_nobody_ends_is_named(leaks: str, end: bool, tmp_path: Path) -> None:
    command = scripted(leaks if leaks == "sessions" else "rebuilds")
    with listening(command) as (port, pid), watched(port, pid, tmp_path) as (asking, file):
        asking.sessions(ROUNDS, end=end)
    assert ("session-leak" in explained(file)) is (leaks == "sessions" and not end)


@pytest.mark.parametrize("leaks", ["requests", "nothing"])
@patient
def test_memory_that_rises_with_each_request_is_named(leaks: str, tmp_path: Path) -> None:
    with listening(scripted(leaks)) as (port, pid), watched(port, pid, tmp_path) as (asking, file):
        asking.calls(ROUNDS)
    assert ("task-leak" in explained(file)) is (leaks == "requests")


@pytest.mark.parametrize("rebuilds", ["rebuilds", "nothing"])
@patient
def test_processor_time_that_grows_with_the_tools_is_named(rebuilds: str, tmp_path: Path) -> None:
    files = []
    for tools in (4, 200):
        with listening(scripted(rebuilds, tools)) as (port, pid), watched(port, pid, tmp_path) as (asking, file):
            asking.ask("tools/list")
            asking.calls(150)
        files.append(file)
    few, many = files
    assert ("rebuilt-per-request" in explained(few, "--beside", many.name)) is (rebuilds == "rebuilds")


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


@pytest.mark.parametrize("leaks", ["leaks", "keeps nothing"])
@patient
def test_a_server_over_stdio_is_sampled_unasked(leaks: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(STDIO)
    upstream = shlex.join([sys.executable, "-S", str(tmp_path / "server.py"), leaks])
    file = tmp_path / "recording.jsonl.zst"
    command = [sys.executable, "-m", "mcpace", "record", "--upstream", f"stdio:{upstream}", "--out", str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as recorder:
        assert recorder.stdin is not None and recorder.stdout is not None
        for number in range(ROUNDS):
            params = {"name": "work", "arguments": {}}
            recorder.stdin.write(
                json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}) + "\n"
            )
            recorder.stdin.flush()
            assert recorder.stdout.readline()
        recorder.stdin.close()
        assert recorder.wait(LIMIT_S) == 0
    assert ("task-leak" in explained(file)) is (leaks == "leaks")
