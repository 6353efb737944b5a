"""``mcpace serve`` as a process, and a plain client for it that uses nothing of mcpace."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import signal
import ssl
import subprocess
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.commands import COMMAND, LIMIT_S

LEGACY = "2025-11-25"


class Lines:
    """Lines that a process writes to a pipe. They can be awaited in any order."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._rest = b""
        self.said: list[str] = []
        self._pending: list[str] = []

    def until(self, pattern: str) -> re.Match[str]:
        """Waits for the first line that matches and removes it, so that later calls don't see it."""
        while True:
            for position, line in enumerate(self._pending):
                if match := re.search(pattern, line):
                    del self._pending[position]
                    return match
            ready, _, _ = select.select([self._stream], [], [], LIMIT_S)
            part = os.read(self._stream.fileno(), 65_536) if ready else b""
            assert part, f"{pattern!r} was never said, but {self.said}"
            self.take(part)

    def take(self, part: bytes) -> None:
        """Adds output that was read elsewhere."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        self.said += [line.decode() for line in lines]
        self._pending += [line.decode() for line in lines]


class Served:
    """A running server and its stderr."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines = Lines(process.stderr)
        self.port = 0

    def ready(self) -> str:
        """Waits for the ready line and returns it."""
        match = self.lines.until(r"^mcpace \S+ serving .*")
        if port := re.search(r":(\d+)/", match[0]):
            self.port = int(port[1])
        return match[0]

    def ended(self) -> int:
        """Waits until the process and all others with its stderr have ended. Returns the exit code."""
        _, rest = self.process.communicate(timeout=LIMIT_S)
        self.lines.take(rest)
        return self.process.returncode

    @property
    def said(self) -> str:
        """All of stderr so far."""
        return "\n".join(self.lines.said)


@contextmanager
def serving(folder: Path, *words: object, source: str | None = None, name: str = "server.py") -> Iterator[Served]:
    """Runs ``mcpace serve`` with these arguments in ``folder``. Kills it where the test leaves early."""
    if source is not None:
        (folder / name).write_text(textwrap.dedent(source))
    process = subprocess.Popen(
        [*COMMAND, "serve", *map(str, words)],
        cwd=folder,
        # Files that a killed parent of workers leaves behind are removed with the test's folder.
        env=os.environ | {"TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with hold_process(process) as served:
        yield served


@contextmanager
def hold_process(process: subprocess.Popen[bytes]) -> Iterator[Served]:
    """Holds a server's process with its pipes. Kills its process group at the end of the block."""
    served = Served(process)
    try:
        yield served
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.wait(LIMIT_S)


class Client:
    """One connection, with a session once it is begun."""

    def __init__(self, port: int, *, path: str = "/mcp", tls: ssl.SSLContext | None = None) -> None:
        self._connection = (
            http.client.HTTPSConnection("localhost", port, timeout=LIMIT_S, context=tls)
            if tls
            else http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        )
        self._path = path
        self.session: str | None = None
        self._id = 0

    def begin(self) -> None:
        """Initializes a session and keeps its id."""
        information = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        status, headers, _ = self.send("initialize", information)
        assert status == 200
        self.session = headers.get("mcp-session-id")

    def call(self, tool: str, **arguments: object) -> str:
        """Calls a tool and returns its text."""
        status, _, body = self.send("tools/call", {"name": tool, "arguments": arguments})
        assert status == 200, body
        return str(json.loads(body)["result"]["content"][0]["text"])

    def send(self, method: str, params: dict[str, Any], **headers: str) -> tuple[int, dict[str, str], str]:
        """Sends a request. Returns status, headers by lower-case name, and body."""
        self._id += 1
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        sent["MCP-Protocol-Version"] = LEGACY
        if self.session:
            sent["Mcp-Session-Id"] = self.session
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self._connection.request("POST", self._path, json.dumps(message), sent | headers)
        reply = self._connection.getresponse()
        return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read().decode()

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def modern(port: int, tool: str, **arguments: object) -> dict[str, Any]:
    """Makes one call of revision 2026-07-28 on its own connection."""
    revision = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    client = Client(port)
    headers = {"MCP-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    status, _, body = client.send("tools/call", params, **headers)
    client.close()
    assert status == 200, body
    result: dict[str, Any] = json.loads(body)["result"]
    return result


def children(pid: int) -> Sequence[int]:
    """Process ids of a process's children."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]
