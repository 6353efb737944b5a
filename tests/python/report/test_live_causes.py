"""``mcpace record --explain`` names a cause once on stderr while the recording goes on."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from time import sleep
from typing import Any
from urllib.request import Request, urlopen

import pytest

from mcpace.cli.record_explain import LiveExplanation
from support import commands

START = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
LINE = re.compile(r"mcpace: \d\d:\d\d:\d\d, after (\d+) calls?: (.+)")

ONE_AT_A_TIME = """
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "tools/call":
        time.sleep(0.2)
        result = {"content": []}
    else:
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
        result = {} if asked["method"] == "ping" else result
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def request(number: int, method: str, **parameters: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}


def calls(first: int, number: int) -> list[dict[str, Any]]:
    called = [request(first + one, "tools/call", name="look", arguments={}) for one in range(number)]
    return [*called, request(first + number, "ping")]


def cause_lines(text: str) -> list[tuple[int, str]]:
    """Calls so far and cause of each line that was printed while recording."""
    return [(int(found[1]), found[2]) for found in LINE.finditer(text)]


def test_a_cause_is_named_while_a_stdio_server_is_recorded(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "server.py").write_text(ONE_AT_A_TIME)
    upstream = f"stdio:{sys.executable} -S {tmp_path / 'server.py'}"
    words = [*commands.COMMAND, "record", "--explain", "--upstream", upstream, "--out", "r.jsonl.zst"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        assert process.stdin and process.stdout and process.stderr

        def exchange(messages: list[dict[str, Any]]) -> None:
            assert process.stdin and process.stdout
            process.stdin.write("".join(json.dumps(one) + "\n" for one in messages))
            process.stdin.flush()
            for _ in messages:
                assert "result" in json.loads(process.stdout.readline())

        exchange([request(0, "initialize", **START)])
        exchange(calls(1, 6))
        first = commands.line(process)
        exchange(calls(20, 6))
        process.stdin.close()
        rest = process.stderr.read()
        assert process.stdout.read() == ""
        assert process.wait(commands.LIMIT_S) == 0
    told = cause_lines(first + rest)
    assert cause_lines(first) and told[0][0] == 6
    assert len({cause for _, cause in told}) == len(told)
    # The verdict at the end stays.
    assert "mcpace explain r.jsonl.zst" in rest
    # A second explanation of the same causes prints nothing.
    live = LiveExplanation(tmp_path / "r.jsonl.zst")
    live._explain_once()
    assert cause_lines(capfd.readouterr().err)
    live._explain_once()
    assert capfd.readouterr().err == ""


class OneAtATime(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    turn = Lock()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.turn:
            if asked["method"] == "tools/call":
                sleep(0.2)
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"content": []}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


def test_a_cause_is_named_while_an_http_server_is_recorded(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), OneAtATime) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        upstream = f"http://127.0.0.1:{server.server_port}/mcp"
        with (
            commands.start_command(
                "record", "--explain", "--upstream", upstream, "--out", "r.jsonl.zst", folder=tmp_path
            ) as process,
            ThreadPoolExecutor(8) as pool,
        ):
            started = commands.line(process)
            url = "http://127.0.0.1:" + started.split("http://127.0.0.1:")[1].split()[0]

            def post(message: dict[str, Any]) -> None:
                headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
                with urlopen(Request(url, json.dumps(message).encode(), headers), timeout=commands.LIMIT_S) as answer:
                    assert "result" in json.load(answer)

            list(pool.map(post, calls(1, 6)))
            first = commands.line(process)
            process.send_signal(signal.SIGINT)
            ended = commands.end(process)
        server.shutdown()
    assert ended.code == 0
    assert [number for number, _ in cause_lines(first)] == [6]
    assert not {cause for _, cause in cause_lines(first)} & {cause for _, cause in cause_lines(ended.stderr)}
    # A report on the file names the live command that decides between the cause and its alternatives.
    shown = commands.run("explain", "r.jsonl.zst", folder=tmp_path)
    assert "To decide: mcpace explain TARGET --tool look" in " ".join(shown.stdout.split())


def test_a_large_recording_is_not_explained_live(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "r.jsonl.zst"
    file.write_bytes(bytes(100))
    with LiveExplanation(file, shortest_wait_s=0.001, most_bytes=99) as live:
        live._thread.join(commands.LIMIT_S)
        assert not live._thread.is_alive()
    assert "its causes are named when it ends" in capfd.readouterr().err


def test_explain_of_a_device_is_a_usage_error(tmp_path: Path) -> None:
    ended = commands.run(
        "record", "--explain", "--upstream", "http://127.0.0.1:1/", "--out", "/dev/null", folder=tmp_path
    )
    assert ended.code == 2
    assert "--explain can't read the recording in /dev/null" in ended.sentence()
