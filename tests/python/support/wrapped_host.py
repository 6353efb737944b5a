"""A configuration with one server, wrapped by the real command, and a client that starts servers as hosts do."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcpace.lab.hosts.flights import Flight, list_flights
from support.commands import LIMIT_S, Ended, run

SERVER = """\
import os, sys
from pathlib import Path
from mcpace import MCPServer

mcp = MCPServer("calculator")

@mcp.tool()
def add(a: int, b: int) -> int:
    "Adds two numbers."
    return a + b

@mcp.tool()
def fail() -> str:
    "Fails."
    raise ValueError("no such luck")

@mcp.tool()
def payload(size: int) -> str:
    "Returns text that compresses badly."
    return os.urandom(size // 2).hex()

Path(sys.argv[1]).write_text(str(os.getpid()))
mcp.run()
"""
STUBBORN = """\
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
Path(sys.argv[1]).write_text(str(os.getpid()))
print('{"jsonrpc":"2.0","method":"notifications/started"}', flush=True)
time.sleep(3600)
"""
STARTER = """\
import subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
print(process.pid, flush=True)
process.wait()
"""


def prepare(place: Path) -> Path:
    """Writes the servers' programs."""
    (place / "server.py").write_text(SERVER)
    (place / "stubborn.py").write_text(STUBBORN)
    return place


def state(place: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(place / "state")}


def root(place: Path) -> Path:
    return place / "state" / "mcpace" / "flights"


def configure(place: Path, program: str = "server.py", **more: Any) -> Path:
    """A configuration with one server, ``calculator``, that writes its process id to a file."""
    file = place / "mcp.json"
    entry = {"command": sys.executable, "args": [str(place / program), str(place / "pid")], **more}
    file.write_text(json.dumps({"mcpServers": {"calculator": entry}}, indent=2))
    return file


def wrap(place: Path, *words: object) -> Ended:
    return run("wrap", *words, folder=place, environment=state(place))


def command_line(file: Path) -> list[str]:
    entry = json.loads(file.read_text())["mcpServers"]["calculator"]
    return [entry["command"], *entry["args"]]


class Host:
    """Starts a server as a host does, and speaks to it."""

    def __init__(self, command: list[str], file_limit: int | None = None, folder: Path | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=file_limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))),
        )
        self._next = 0

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        reply: dict[str, Any] = json.loads(self.line())
        assert reply["id"] == self._next, reply
        return reply

    def initialize(self) -> None:
        info = {"name": "host", "version": "1"}
        self.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        assert self.process.stdin is not None
        self.process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        self.process.stdin.flush()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.request("tools/call", name=tool, arguments=arguments)["result"]
        return result

    def line(self) -> bytes:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT_S)
        assert ready, "the server says nothing"
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read())
        return line

    def end(self) -> tuple[int, str]:
        """Closes the server's input and waits for its end. Returns its exit code and stderr."""
        _, stderr = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, stderr.decode()


@contextmanager
def hosting(command: list[str], file_limit: int | None = None) -> Iterator[Host]:
    host = Host(command, file_limit)
    try:
        host.initialize()
        yield host
    finally:
        if host.process.poll() is None:
            os.killpg(host.process.pid, signal.SIGKILL)
        host.process.communicate()


def flight(place: Path) -> Flight:
    [flight] = list_flights(root(place))
    return flight
