"""The harness's side of host.py: starts the host in an environment, and sends it tasks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
START_LIMIT_S = 60
LOOK_LIMIT_S = 30
STDERR_KEPT = 4000


@dataclass
class Process:
    """A forked child, with its pipes."""

    pid: int
    stdin: IO[bytes]
    stdout: IO[bytes]
    connection: socket.socket
    log: IO[bytes]
    ended: threading.Event = field(default_factory=threading.Event)
    status: int | None = None

    def stderr(self) -> str:
        """The last part of its standard error."""
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), STDERR_KEPT, max(0, size - STDERR_KEPT)).decode(errors="replace")

    def kill(self) -> None:
        """Ends the child. The reading thread keeps its output, because a process of the server may hold the pipe
        open."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.ended.wait(5)
        with contextlib.suppress(OSError):
            self.stdin.close()


class Host:
    """The host process of one environment, which forks its servers."""

    def __init__(self, python: Path, line: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="compat-")
        self.address = str(Path(self.folder.name) / "host")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.address)
        listener.listen(16)
        variables = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "SSL_CERT_FILE") if name in os.environ},
            "HOME": self.folder.name,
            "PYTHONPATH": str(ROOT / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "FASTMCP_CHECK_FOR_UPDATES": "off",
            "FASTMCP_SHOW_SERVER_BANNER": "false",
        }
        command = [python, "-W", "ignore", Path(__file__).with_name("host.py"), str(listener.fileno()), line]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=sys.stderr, env=variables, pass_fds=[listener.fileno()]
        )
        listener.close()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

    @contextlib.contextmanager
    def running(self, task: dict[str, Any]) -> Iterator[Process]:
        """Runs a child with the task for the duration of the block."""
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        with (
            tempfile.TemporaryFile() as log,
            tempfile.TemporaryDirectory(prefix="compat-") as folder,
            socket.socket(socket.AF_UNIX) as connection,
        ):
            connection.settimeout(START_LIMIT_S)
            try:
                connection.connect(self.address)
                told = json.dumps({**task, "folder": folder}).encode()
                # The standard output of an HTTP server is not read.
                output = log.fileno() if task.get("transport") == "http" else theirs_out
                socket.send_fds(connection, [told], [theirs_in, output, log.fileno()])
                answers = connection.makefile("rb")
                pid = json.loads(answers.readline())["pid"]
            finally:
                os.close(theirs_in)
                os.close(theirs_out)
            stdin, stdout = os.fdopen(ours_in, "wb", buffering=0), os.fdopen(ours_out, "rb")
            process = Process(pid, stdin, stdout, connection, log)
            connection.settimeout(None)
            threading.Thread(target=_await_end, args=(process, answers), daemon=True).start()
            try:
                yield process
            finally:
                process.kill()

    def look(self, file: Path, paths: list[str]) -> tuple[list[dict[str, str]] | None, str]:
        """The server objects of a file; for a file that can't be imported none, and its standard error."""
        with self.running({"do": "look", "file": str(file), "paths": paths}) as process:
            # A file that serves over stdio while it is imported ends with its input.
            process.stdin.close()
            watchdog = threading.Timer(LOOK_LIMIT_S, process.kill)
            watchdog.start()
            try:
                told = process.stdout.read()
            except (OSError, ValueError):
                told = b""
            watchdog.cancel()
            process.ended.wait(LOOK_LIMIT_S)
            return (json.loads(told), "") if told and process.status == 0 else (None, process.stderr())


def _await_end(process: Process, answers: IO[bytes]) -> None:
    try:
        line = answers.readline()
        process.status = json.loads(line)["status"] if line else None
    except (OSError, ValueError):
        process.status = None
    process.ended.set()
