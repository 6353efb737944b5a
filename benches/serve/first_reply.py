"""Seconds from the start of a server's process to its first reply."""

import json
import socket
import subprocess
import time
from contextlib import suppress

import call
from process import START_LIMIT_S, Process
from subjects import Subject

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "start", "version": "1"}},
}


def over_stdio(command: tuple[str, ...]) -> float:
    """Until the answer to `initialize`."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps(INITIALIZE) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        taken = time.perf_counter() - begun
        server.stdin.close()
    if answer.get("id") != 0 or "result" not in answer:
        raise RuntimeError(f"{' '.join(command)} answered {answer}")
    return taken


def over_http(subject: Subject) -> float:
    """Until the answer to a call, with a new attempt to connect every millisecond."""
    of = call.Call(subject.revisions[0], events_only=subject.events_only)
    begun = time.perf_counter()
    with Process(subject.command, subject.environment) as server:
        while time.perf_counter() - begun < START_LIMIT_S:
            with suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", server.port), timeout=1).close()
                call.once(server.port, of, subject.mode)
                return time.perf_counter() - begun
            time.sleep(0.001)
    raise RuntimeError(f"{subject.label} did not answer within {START_LIMIT_S} s")
