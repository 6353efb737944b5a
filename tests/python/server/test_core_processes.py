"""The compiled part of the Python server: shutdown of calls and processes, signals, forks, stdio."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from typing import Any

from mcpace import _core
from support.core_server import LIMIT_S, server, sync
from support.http_client import HttpClient


def test_stopping_lets_calls_finish_and_twice_does_nothing() -> None:
    began, release = threading.Event(), threading.Event()

    def wait() -> str:
        began.set()
        assert release.wait(LIMIT_S)
        return "finished"

    running = server(wait=sync(wait)).serve_http(_core.HttpOptions(port=0, stateless=True))
    wire = HttpClient(running.port)
    wire.begin("tools/call", {"name": "wait"})
    assert began.wait(LIMIT_S)
    stopped: list[int] = []
    stopping = threading.Thread(target=lambda: stopped.append(running.stop()))
    stopping.start()
    release.set()
    assert wire.answer()["result"]["content"][0]["text"] == "finished"
    stopping.join(LIMIT_S)
    assert stopped == [0]
    assert running.stop() == 0
    running.wait()


PROGRAM = """
import asyncio, json, sys, threading, time
from mcpace import _core

async def forever():
    await asyncio.Event().wait()

def block():
    time.sleep(0.2)
    return "blocked"

made = _core.Server("test", "1")
listed = lambda name: json.dumps({"name": name, "inputSchema": {"type": "object"}})
made.add_tool(listed("forever"), _core.Handler(forever, kind="async", output="text"))
made.add_tool(listed("block"), _core.Handler(block, output="text"))
"""


def program(more: str, **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM + more], text=True, stderr=subprocess.PIPE, **how)


def test_a_process_ends_cleanly_though_nothing_was_stopped() -> None:
    more = """
import http.client
running = made.serve_http(_core.HttpOptions(port=0, stateless=True, grace_s=0.1))
for tool in ("forever", "block"):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}})
    connection = http.client.HTTPConnection("127.0.0.1", running.port)
    connection.request("POST", "/mcp", body, {"Content-Type": "application/json", "Accept": "application/json"})
    globals()[tool] = connection
time.sleep(0.05)
"""
    ended = program(more)
    _, errors = ended.communicate(timeout=LIMIT_S)
    assert (ended.returncode, errors) == (0, "")


def test_a_forked_child_ends_by_itself() -> None:
    more = """
import os
running = made.serve_http(_core.HttpOptions(port=0))
made.event_loop()
child = os.fork()
if child == 0:
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
"""
    ended = program(more)
    _, errors = ended.communicate(timeout=LIMIT_S)
    assert (ended.returncode, errors) == (0, "")


def test_a_signal_ends_waiting() -> None:
    more = """
running = made.serve_http(_core.HttpOptions(port=0))
try:
    print("ready", flush=True)
    running.wait()
except KeyboardInterrupt:
    running.stop()
    sys.exit(7)
"""
    ended = program(more, stdout=subprocess.PIPE)
    assert ended.stdout is not None
    assert ended.stdout.readline() == "ready\n"
    ended.send_signal(signal.SIGINT)
    _, errors = ended.communicate(timeout=LIMIT_S)
    assert (ended.returncode, errors) == (7, "")


def test_a_signal_ends_stdio() -> None:
    more = """
try:
    print("ready", file=sys.stderr, flush=True)
    made.serve_stdio()
except KeyboardInterrupt:
    sys.exit(7)
"""
    ended = program(more, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert ended.stderr is not None
    assert ended.stdin is not None
    assert ended.stdout is not None
    assert ended.stderr.readline() == "ready\n"
    ended.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    ended.stdin.flush()
    assert json.loads(ended.stdout.readline())["id"] == 1
    ended.send_signal(signal.SIGINT)
    assert ended.wait(LIMIT_S) == 7
    assert ended.stderr.read() == ""
    ended.communicate()


def test_stdio_serves_until_its_input_ends() -> None:
    ended = program("made.serve_stdio()", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "block"}},
    ]
    sent = "".join(json.dumps(message) + "\n" for message in messages)
    out, errors = ended.communicate(sent, timeout=LIMIT_S)
    replies = {reply["id"]: reply["result"] for reply in map(json.loads, out.splitlines())}
    assert replies[1]["serverInfo"]["name"] == "test"
    assert replies[2]["content"][0]["text"] == "blocked"
    assert (ended.returncode, errors) == (0, "")
