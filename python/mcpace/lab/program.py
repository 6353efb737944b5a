"""An adapter's program as a process: commands in, answers out (adapters/README.md), and an end to everything.

Programs are other people's code under test. One that dies, hangs, floods stderr or prints rubbish becomes an error
that says so, within a limit; its whole process group is gone afterwards. Stdout and stderr are read by a thread each,
so that no pipe can fill up.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from mcpace.lab.children import end_group, has_exited, wait_exit
from mcpace.lab.environments import Environment
from mcpace.lab.errors import ProgramDied, ProgramHung, ProgramRubbish, Unsupported

READY_LIMIT_S = 60.0
"""Imports of a cold environment on a busy machine."""
CLOSE_LIMIT_S = 5.0
REAP_LIMIT_S = 2.0
LOOK_EVERY_S = 0.5
UNSUPPORTED_EXIT = 127
LINE_LIMIT = 1024 * 1024
STDERR_TAIL = 4_096
SHOWN = 200


@dataclass(frozen=True)
class Answer:
    op: str
    ok: bool
    start_ns: int
    end_ns: int
    """CLOCK_MONOTONIC; both 0 where nothing was started."""
    result: dict[str, Any] = field(default_factory=dict)
    error_kind: str | None = None
    """`unsupported`, `timeout`, `auth`, `connection`, `protocol` or `other`."""
    error_message: str | None = None


class ClientProgram:
    """A running client program. Made by `start`; use as a context manager or call `close`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None, "start() made pipes"
        assert process.stdout is not None, "start() made pipes"
        assert process.stderr is not None, "start() made pipes"
        self._process = process
        self._stdin = process.stdin
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._stderr_tail: deque[bytes] = deque()
        self._threads = [
            threading.Thread(target=self._read_stdout, args=(process.stdout,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(process.stderr,), daemon=True),
        ]
        self.version = ""
        """Of the SDK, as the program found it."""

    @classmethod
    def start(
        cls, command: Sequence[str], *, environment: Environment | None = None, ready_limit_s: float = READY_LIMIT_S
    ) -> ClientProgram:
        """Starts a program and waits until it says that it is ready.

        Raises `Unsupported` for exit code 127, `ProgramDied`, `ProgramHung` or `ProgramRubbish` otherwise.
        """
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Nothing that lies in the user's folder may be imported or written by accident.
                cwd=environment.path if environment is not None else tempfile.gettempdir(),
                env={**os.environ, **past_proxies()},
                start_new_session=True,
            )
        except OSError as error:
            raise ProgramDied(f"{command[0]} can't be started: {error.strerror}") from error
        program = cls(process)
        try:
            for thread in program._threads:
                thread.start()
            ready = program._next(ready_limit_s, "ready")
            if ready.get("ready") is not True:
                raise program._rubbish(json.dumps(ready).encode(), "ready")
            program.version = str(ready.get("version", ""))
        except BaseException:
            program._kill()
            raise
        return program

    def command(self, command: dict[str, Any], timeout_s: float) -> Answer:
        """Sends one command and waits for its answer. After an exception the program has been killed.

        Raises `ProgramDied`, `ProgramHung`, `ProgramRubbish`, or `Unsupported` for exit code 127.
        """
        name = str(command.get("cmd"))
        try:
            # A dead program's pipe breaks here; reading then finds out what it died of.
            with contextlib.suppress(BrokenPipeError):
                self._stdin.write(json.dumps(command).encode() + b"\n")
                self._stdin.flush()
            return self._parse(self._next(timeout_s, name), name)
        except BaseException:
            self._kill()
            raise

    def close(self, limit_s: float = CLOSE_LIMIT_S) -> None:
        """Ends the program: closes its stdin, waits, SIGTERM, SIGKILL. Harmless when it has already gone."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            wait_exit(self._process, limit_s)
        finally:
            self._kill()

    def __enter__(self) -> ClientProgram:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def stderr(self) -> str:
        """The end of what it said on stderr."""
        return b"".join(self._stderr_tail)[-STDERR_TAIL:].decode("utf-8", "replace")

    def _next(self, limit_s: float, waiting_for: str) -> dict[str, Any]:
        line = self._line(limit_s, waiting_for)
        if line is None:
            raise self._death(waiting_for)
        try:
            value = json.loads(line)
        except ValueError:
            raise self._rubbish(line, waiting_for) from None
        if not isinstance(value, dict):
            raise self._rubbish(line, waiting_for)
        return value

    def _line(self, limit_s: float, waiting_for: str) -> bytes | None:
        """The next line; `None` once it has closed its stdout, or died while a child of its own holds that open."""
        deadline = time.monotonic() + limit_s
        while (left := deadline - time.monotonic()) > 0:
            gone = has_exited(self._process)
            try:
                return self._lines.get(timeout=min(left, LOOK_EVERY_S))
            except queue.Empty:
                if gone:
                    return None
        raise ProgramHung(f"the program gave no answer to {waiting_for!r} within {limit_s:g} s{self._said()}")

    def _parse(self, value: dict[str, Any], name: str) -> Answer:
        try:
            answer = Answer(
                op=value["op"],
                ok=value["ok"] is True,
                start_ns=int(value.get("start_ns") or 0),
                end_ns=int(value.get("end_ns") or 0),
                result=dict(value.get("result") or {}),
                error_kind=None if value["ok"] is True else str(value["error"]["kind"]),
                error_message=None if value["ok"] is True else str(value["error"]["message"]),
            )
        except (KeyError, TypeError, ValueError):
            raise self._rubbish(json.dumps(value).encode(), name) from None
        if answer.op != name or answer.end_ns < answer.start_ns:
            raise self._rubbish(json.dumps(value).encode(), name)
        return answer

    def _death(self, waiting_for: str) -> ProgramDied | Unsupported:
        """It closed its stdout: why? A program that closed it and lives on is ended first."""
        by_itself = wait_exit(self._process, REAP_LIMIT_S)
        self._kill()
        code = self._process.returncode
        if not by_itself:
            return ProgramDied(f"the program closed its stdout while {waiting_for!r} was waiting{self._said()}")
        if code == UNSUPPORTED_EXIT:
            lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
            return Unsupported(lines[-1] if lines else "this version can't do that")
        how = f"was ended by {signal_name(-code)}" if code < 0 else f"exited with code {code}"
        return ProgramDied(f"the program {how} while {waiting_for!r} was waiting{self._said()}")

    def _rubbish(self, line: bytes, waiting_for: str) -> ProgramRubbish:
        shown = line[:SHOWN].decode("utf-8", "replace").rstrip("\n")
        more = "…" if len(line) > SHOWN else ""
        return ProgramRubbish(f"the program answered {waiting_for!r} with something that is no answer: {shown!r}{more}")

    def _said(self) -> str:
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return f"; the end of its stderr: {' '.join(lines[-4:])[-SHOWN * 3 :]}" if lines else ""

    def _kill(self) -> None:
        end_group(self._process)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(REAP_LIMIT_S)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            # A thread that still reads holds its pipe's lock; closing would wait for it.
            if pipe is not None and not any(thread.is_alive() for thread in self._threads):
                with contextlib.suppress(OSError):
                    pipe.close()

    def _read_stdout(self, pipe: IO[bytes]) -> None:
        """Lines to the queue, `None` at the end. A line past the limit is cut, and so becomes rubbish."""
        try:
            while line := pipe.readline(LINE_LIMIT):
                self._lines.put(line)
        finally:
            self._lines.put(None)

    def _read_stderr(self, pipe: IO[bytes]) -> None:
        descriptor = pipe.fileno()
        kept = 0
        while part := os.read(descriptor, 1 << 16):
            self._stderr_tail.append(part[-STDERR_TAIL:])
            kept += len(self._stderr_tail[-1])
            while kept - len(self._stderr_tail[0]) >= STDERR_TAIL:
                kept -= len(self._stderr_tail.popleft())


def past_proxies() -> dict[str, str]:
    """What programs connect to is our recorder on loopback, which no proxy of the user's can reach."""
    kept = os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or ""
    hosts = ",".join(filter(None, (kept, "127.0.0.1", "localhost")))
    return {"NO_PROXY": hosts, "no_proxy": hosts}


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
