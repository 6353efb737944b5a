"""Runs the real command as a subprocess. Has servers that misbehave on purpose."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 60.0
COMMAND = (str(Path(sys.executable).parent / "mcpace"),)


@dataclass(frozen=True)
class Ended:
    """Exit code and output of a command."""

    code: int
    stdout: str
    stderr: str

    def sentence(self) -> str:
        """The only line of stderr."""
        lines = self.stderr.splitlines()
        assert len(lines) == 1, self.stderr
        assert lines[0].startswith("mcpace: "), self.stderr
        return lines[0].removeprefix("mcpace: ")


def run(*words: object, folder: Path, environment: Mapping[str, str] | None = None) -> Ended:
    """Runs ``mcpace`` to its end. Fails on a traceback."""
    with start_command(*words, folder=folder, environment=environment) as process:
        return end(process)


@contextmanager
def start_command(
    *words: object, folder: Path, environment: Mapping[str, str] | None = None, stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    """Starts ``mcpace`` in ``folder``, in its own session. Kills the session where the test leaves early."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def end(process: subprocess.Popen[str]) -> Ended:
    """Waits for the end of a command."""
    stdout, stderr = process.communicate(timeout=LIMIT_S)
    assert "Traceback" not in stderr, stderr
    return Ended(process.returncode, stdout, stderr)


def line(process: subprocess.Popen[str]) -> str:
    """Reads the next line of stderr. Nothing else may read stderr before :func:`end`."""
    assert process.stderr is not None
    ready, _, _ = select.select([process.stderr], [], [], LIMIT_S)
    assert ready, "nothing was said"
    return process.stderr.readline()


Answer = Callable[[socket.socket], object]


@contextmanager
def tcp_server(answer: Answer, *, read: bool = True) -> Iterator[str]:
    """A server that hands each connection to ``answer``, after the first of its bytes if ``read``, and then closes it.

    Yields its URL.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(connection,), daemon=True).start()

        def one(connection: socket.socket) -> None:
            with connection:
                try:
                    if read:
                        connection.recv(65_536)
                    answer(connection)
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        listener.shutdown(socket.SHUT_RDWR)


def reply(body: bytes, content_type: str = "application/json", status: str = "200 OK") -> bytes:
    """Builds an HTTP reply."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def read_request(connection: socket.socket) -> bytes:
    """Reads one whole HTTP request."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    while len(body) < (int(length[1]) if length else 0):
        body += received(connection)
    return head + b"\r\n\r\n" + body


def received(connection: socket.socket) -> bytes:
    part = connection.recv(65_536)
    if not part:
        raise ConnectionError("the client has gone")
    return part


def mcp_answer(request: bytes, *, tool: str = "greet", text: str = "hello") -> bytes:
    """Reply of a small legacy MCP server with one read-only tool."""
    head, _, body = request.partition(b"\r\n\r\n")
    if not head.startswith(b"POST"):
        return reply(b"", status="405 Method Not Allowed")
    message = json.loads(body)
    results = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": text, "version": "1"},
        },
        "tools/list": {
            "tools": [{"name": tool, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]
        },
        "tools/call": {"content": [{"type": "text", "text": text}]},
    }
    if "id" not in message:
        return reply(b"", status="202 Accepted")
    outcome: dict[str, object] = {"error": {"code": -32601, "message": text}}
    if message["method"] in results:
        outcome = {"result": results[message["method"]]}
    return reply(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode())


def flood(connection: socket.socket, head: bytes, part: bytes) -> None:
    """Sends ``part`` endlessly."""
    connection.sendall(head)
    while True:
        connection.sendall(part)


def closed_port() -> int:
    """Returns a port on which no program listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
