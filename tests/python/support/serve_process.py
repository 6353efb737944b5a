"""``mcpace serve`` as a process, and a plain client for it that uses nothing of mcpace."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.commands import COMMAND, LIMIT_S
from support.http_client import HttpClient


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


def modern(port: int, tool: str, **arguments: object) -> dict[str, Any]:
    """Makes one call of revision 2026-07-28 on its own connection."""
    revision = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    with HttpClient(port, revision=revision) as client:
        reply = client.ask("tools/call", params, Mcp_Method="tools/call", Mcp_Name=tool)
    assert "result" in reply, reply
    result: dict[str, Any] = reply["result"]
    return result


def children(pid: int) -> Sequence[int]:
    """Process ids of a process's children."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]
