"""Process of an adapter's program: reads its lines of JSON and ends it with its descendants.

Programs are other people's code under test. A program that dies, hangs, floods stderr or prints rubbish becomes an
error within a time limit, and its process group is ended. One thread each reads stdout and stderr, so that no pipe
fills up. The program's stdin stays open; its end tells the program that mcpace is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from mcpace.lab.errors import LabError, ProgramDied, ProgramHung, ProgramRubbish, Unsupported
from mcpace.lab.paths import neutral_folder
from mcpace.lab.processes.child_processes import end_group, wait_exit
from mcpace.lab.processes.strays import Outsiders
from mcpace.system.process_groups import has_exited, start_group

READY_LIMIT_S = 60.0
"""Seconds that a start may take: imports from a cold environment on a busy machine."""
CLOSE_LIMIT_S = 5.0
REAP_LIMIT_S = 2.0
LOOK_EVERY_S = 0.5
UNSUPPORTED_EXIT = 127
LINE_LIMIT = 1024 * 1024
STDERR_TAIL = 4_096
SHOWN = 200


def spawn_group(
    command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts a program in a process group of its own, with pipes, in the neutral folder unless `cwd` is given.

    Raises `ProgramDied` where the program can't be started.
    """
    try:
        return start_group(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or neutral_folder(),
            env={**os.environ, **proxy_exceptions(), **(env or {})},
        )
    except OSError as error:
        raise ProgramDied(f"{command[0]} can't be started: {error.strerror}") from error


class AdapterProcess:
    """Base class of client and server programs. Use as a context manager or call `close`."""

    _line_limit = LINE_LIMIT
    """Most bytes of a line on stdout."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None, "start() made pipes"
        assert process.stdout is not None, "start() made pipes"
        assert process.stderr is not None, "start() made pipes"
        self._process = process
        self._stdin = process.stdin
        self._outsiders = Outsiders(process)
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._ignores_stdout = False
        """Whether further lines on stdout are read and dropped."""
        self._stderr_tail: deque[bytes] = deque()
        self._threads = [
            threading.Thread(target=self._read_stdout, args=(process.stdout,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(process.stderr,), daemon=True),
        ]

    @property
    def pid(self) -> int:
        """The started process, which leads the program's process group."""
        return self._process.pid

    def _await_ready(self, limit_s: float) -> dict[str, Any]:
        """Starts the reader threads and waits for the ready line. Kills the program before any exception."""
        try:
            for thread in self._threads:
                thread.start()
            ready = self._next_message(limit_s, "ready")
            if ready.get("ready") is not True:
                raise self._rubbish_problem(json.dumps(ready).encode(), "ready")
        except BaseException:
            self._kill()
            raise
        return ready

    def close(self, limit_s: float = CLOSE_LIMIT_S) -> None:
        """Ends the program: asks it to end, waits, sends SIGTERM, then SIGKILL. Harmless after its exit."""
        self._outsiders.find()
        self._ask_to_end()
        try:
            wait_exit(self._process, limit_s)
        finally:
            self._kill()

    def _ask_to_end(self) -> None:
        """Closes the program's stdin."""
        with contextlib.suppress(OSError):
            self._stdin.close()

    def exit_error(self, during: str = "load", limit_s: float = 0.0) -> LabError | None:
        """Returns the reason of the program's exit after ending its process group; `None` while it runs.

        An exit within `limit_s` seconds counts: a connection ends before the process that had it.
        """
        return self._exit_problem(during) if wait_exit(self._process, limit_s) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def stderr_tail(self) -> str:
        """Last bytes of the program's stderr."""
        return b"".join(self._stderr_tail)[-STDERR_TAIL:].decode("utf-8", "replace")

    def _next_message(self, limit_s: float, waiting_for: str) -> dict[str, Any]:
        line = self._next_line(limit_s, waiting_for)
        if line is None:
            raise self._exit_problem(waiting_for)
        try:
            value = json.loads(line)
        except ValueError:
            raise self._rubbish_problem(line, waiting_for) from None
        if not isinstance(value, dict):
            raise self._rubbish_problem(line, waiting_for)
        return value

    def _next_line(self, limit_s: float, waiting_for: str) -> bytes | None:
        """Returns the next line; `None` once stdout is closed, or after the exit while a child keeps stdout open."""
        deadline = time.monotonic() + limit_s
        while (left := deadline - time.monotonic()) > 0:
            gone = has_exited(self._process)
            try:
                return self._lines.get(timeout=min(left, LOOK_EVERY_S))
            except queue.Empty:
                if gone:
                    return None
        raise ProgramHung(f"the program gave no answer to {waiting_for!r} within {limit_s:g} s{self._stderr_summary()}")

    def _exit_problem(self, waiting_for: str) -> ProgramDied | Unsupported:
        """Error for a closed stdout, by the program's exit code. A program that is still running is ended first."""
        by_itself = wait_exit(self._process, REAP_LIMIT_S)
        self._kill()
        code = self._process.returncode
        if not by_itself:
            return ProgramDied(
                f"the program closed its stdout while {waiting_for!r} was waiting{self._stderr_summary()}"
            )
        if code == UNSUPPORTED_EXIT:
            lines = [line.strip() for line in self.stderr_tail.splitlines() if line.strip()]
            return Unsupported(lines[-1] if lines else "this version can't do that")
        how = f"was ended by {signal_name(-code)}" if code < 0 else f"exited with code {code}"
        return ProgramDied(f"the program {how} while {waiting_for!r} was waiting{self._stderr_summary()}")

    def _rubbish_problem(self, line: bytes, waiting_for: str) -> ProgramRubbish:
        shown = line[:SHOWN].decode("utf-8", "replace").rstrip("\n")
        more = "…" if len(line) > SHOWN else ""
        return ProgramRubbish(f"the program answered {waiting_for!r} with something that is no answer: {shown!r}{more}")

    def _stderr_summary(self) -> str:
        lines = [line.strip() for line in self.stderr_tail.splitlines() if line.strip()]
        return f"; the end of its stderr: {' '.join(lines[-4:])[-SHOWN * 3 :]}" if lines else ""

    def _kill(self) -> None:
        self._outsiders.find()
        try:
            end_group(self._process)
        finally:
            self._outsiders.end()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(REAP_LIMIT_S)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            # A thread that still reads holds its pipe's lock; closing would wait for it.
            if pipe is not None and not any(thread.is_alive() for thread in self._threads):
                with contextlib.suppress(OSError):
                    pipe.close()

    def _read_stdout(self, pipe: IO[bytes]) -> None:
        """Puts each line into the queue, and `None` at the end.

        A line over the limit is cut, and becomes rubbish. All that follows it is dropped.
        """
        try:
            while line := pipe.readline(self._line_limit):
                if not self._ignores_stdout:
                    self._lines.put(line)
                    if len(line) == self._line_limit and not line.endswith(b"\n"):
                        self._ignores_stdout = True
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


def proxy_exceptions() -> dict[str, str]:
    """Variables that exclude loopback from the user's proxies: programs connect to the recorder on loopback."""
    kept = os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or ""
    hosts = ",".join(filter(None, (kept, "127.0.0.1", "localhost")))
    return {"NO_PROXY": hosts, "no_proxy": hosts}


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
