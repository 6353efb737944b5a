"""A private Redis: the installed redis-server on its own loopback port, with data in memory only.

The lab speaks RESP to it with a minimal client. The server programs under test use the clients of their languages.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from mcpace.lab.environments.toolchains import REMEDIES, find_command
from mcpace.lab.errors import LabError
from mcpace.lab.processes.child_processes import end_group
from mcpace.lab.processes.limits import LIMIT_EXEC
from mcpace.system.process_groups import has_exited, start_group

PROGRAM = "redis-server"
START_LIMIT_S = 20.0
ANSWER_LIMIT_S = 30.0
PAUSE_S = 0.01
ATTEMPTS = 5
"""Attempts to start: another process may take the port after it was found free and before Redis binds it."""
DATABASES = 256
"""Most databases: one for each server under test."""
BATCH = 1_000
"""Most commands of one pipeline."""
LONGEST_LINE = 64 * 1024

Value = bytes | int | None | list["Value"]


class RedisProblem(LabError):
    """Redis isn't installed, doesn't start, or answers with an error."""

    code = "redis"


def find_program() -> str:
    """Finds the redis-server program.

    Raises :class:`RedisProblem` where it isn't installed.
    """
    if found := find_command(PROGRAM):
        return found
    raise RedisProblem(f"the shop workload needs {PROGRAM}, which is not installed: {REMEDIES['redis']}")


class Redis:
    """A running Redis. Use as a context manager, or call :meth:`close`."""

    def __init__(self) -> None:
        program = find_program()
        self._folder = Path(tempfile.mkdtemp(prefix="mcpace-redis-"))
        try:
            self._process, self.port = _start_redis(program, self._folder)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        try:
            with self.connect() as connection:
                info = connection.send_command("INFO", "server")
        except BaseException:
            self.close()
            raise
        lines = info.decode().splitlines() if isinstance(info, bytes) else []
        self.version = next((line.partition(":")[2] for line in lines if line.startswith("redis_version:")), "")

    @property
    def pid(self) -> int:
        """Process id of redis-server."""
        return self._process.pid

    def database_url(self, database: int) -> str:
        """URL of one of its databases."""
        return f"redis://127.0.0.1:{self.port}/{database}"

    def connect(self, database: int = 0) -> Connection:
        """Opens a connection to one of its databases."""
        connection = Connection(self.port)
        if database:
            try:
                connection.send_command("SELECT", database)
            except BaseException:
                connection.close()
                raise
        return connection

    def close(self) -> None:
        """Ends Redis. Closing twice is harmless."""
        end_group(self._process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Redis:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Connection:
    """Commands to Redis, one after another. Use as a context manager."""

    def __init__(self, port: int) -> None:
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_LIMIT_S)
        except OSError as error:
            raise RedisProblem(f"Redis on port {port} can't be reached: {error.strerror or error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader: BinaryIO = self._socket.makefile("rb")

    def send_command(self, *words: str | int | bytes) -> Value:
        """Sends one command and returns its answer.

        Raises :class:`RedisProblem` where the answer is an error.
        """
        return self.send_pipeline([words])[0]

    def send_pipeline(self, commands: Iterable[Sequence[str | int | bytes]]) -> list[Value]:
        """Sends commands in pipelines and returns their answers.

        Raises :class:`RedisProblem` where an answer is an error.
        """
        waiting, answers = list(commands), []
        try:
            for start in range(0, len(waiting), BATCH):
                batch = waiting[start : start + BATCH]
                self._socket.sendall(b"".join(map(_encode_command, batch)))
                answers += [self._read_reply() for _ in batch]
        except OSError as error:
            raise RedisProblem(f"Redis has gone: {error.strerror or error}") from error
        return answers

    def close(self) -> None:
        """Ends the connection."""
        self._reader.close()
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _read_reply(self) -> Value:
        line = self._reader.readline(LONGEST_LINE)
        if not line.endswith(b"\r\n"):
            raise RedisProblem("Redis has gone: it closed the connection")
        kind, rest = line[:1], line[1:-2]
        match kind:
            case b"+":
                return rest
            case b"-":
                raise RedisProblem(f"Redis answers with an error: {rest.decode(errors='replace')}")
            case b":":
                return int(rest)
            case b"$":
                return None if rest.startswith(b"-") else self._read_bulk(int(rest))
            case b"*":
                return None if int(rest) < 0 else [self._read_reply() for _ in range(int(rest))]
        raise RedisProblem(f"Redis answers with something that isn't RESP: {line[:40]!r}")

    def _read_bulk(self, length: int) -> bytes:
        data = self._reader.read(length + 2)
        if len(data) < length + 2:
            raise RedisProblem("Redis has gone: it closed the connection in the middle of an answer")
        return data[:-2]


def _encode_command(words: Sequence[str | int | bytes]) -> bytes:
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def _start_redis(program: str, folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    last_line = ""
    for _ in range(ATTEMPTS):
        port = _free_port()
        with (folder / "log").open("wb") as log:
            process = start_group(
                _redis_command(program, port, folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )
        try:
            if _await_answer(process, port):
                return process, port
        except BaseException:
            end_group(process)
            raise
        end_group(process)
        lines = (folder / "log").read_text(errors="replace").splitlines()
        last_line = lines[-1].strip() if lines else "it said nothing"
    raise RedisProblem(f"{program} doesn't start: {last_line[:300]}")


def _redis_command(program: str, port: int, folder: Path) -> list[str]:
    # No configuration file: the machine's own Redis may have one.
    options = {
        "port": port,
        "bind": "127.0.0.1",
        "dir": folder,
        "save": "",
        "appendonly": "no",
        "databases": DATABASES,
        "daemonize": "no",
        "loglevel": "warning",
        "tcp-backlog": 511,
    }
    # limit_exec.py makes the kernel kill Redis when this process dies.
    return [
        sys.executable,
        "-I",
        "-S",
        str(LIMIT_EXEC),
        "-",
        "-",
        program,
        *(word for name, value in options.items() for word in (f"--{name}", str(value))),
    ]


def _await_answer(process: subprocess.Popen[bytes], port: int) -> bool:
    """Waits until Redis answers. Returns false where it exits first, or the time limit is over."""
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and not has_exited(process):
        try:
            with Connection(port) as connection:
                # Another Redis may have taken the port: compare the process ids.
                info = connection.send_command("INFO", "server")
                return isinstance(info, bytes) and f"process_id:{process.pid}\r\n".encode() in info
        except RedisProblem:
            time.sleep(PAUSE_S)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
