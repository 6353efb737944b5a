"""Channels of workers: bytes to a worker and bytes from it.

Only the channel differs between the kinds of places. The protocol, the plan and the counts are the same for all.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Protocol

from mcpace.lab.errors import LabError, ProgramHung
from mcpace.lab.processes.adapter_process import AdapterProcess, signal_name, spawn_group
from mcpace.lab.processes.child_processes import wait_exit
from mcpace.system.process_groups import kill_group

START_LIMIT_S = 60.0
"""Seconds from the start to the first message: a connection to the host, and the start of Python."""
CLOSE_LIMIT_S = 2.0
LOOK_S = 0.5
LINE_LIMIT = 256 * 1024 * 1024
MOST_WAITING_LINES = 16
"""Lines that are read ahead. A worker that sends more waits, so that it cannot fill this machine's memory."""
SSH_FAILED = 255
"""Exit code of ``ssh`` for a failure of its own, and for a command that a signal ended."""


class WorkerChannel(Protocol):
    """Connection of the driver to one worker, from before the worker's start to after its end."""

    start_limit_s: float
    """Seconds that the first line may take."""

    @property
    def lines(self) -> queue.Queue[bytes | None]:
        """Lines from the worker, and ``None`` after the last one."""

    def next_line(self, limit_s: float) -> bytes | None:
        """The next line; ``None`` after the last one.

        Raises :class:`TimeoutError`.
        """

    def send(self, line: bytes) -> None:
        """Sends a line. Raises :class:`OSError` or :class:`ValueError` where the worker is gone."""

    def end_input(self) -> None:
        """Ends the worker's input, which asks the worker to end."""

    def kill(self) -> None:
        """Ends the worker at once, and waits a short time for its end."""

    def close(self, limit_s: float) -> None:
        """Asks the worker to end, and kills it after the limit."""

    def end_reason(self) -> str:
        """Why there are no further lines."""


class ProcessChannel(AdapterProcess):
    """Channel to a process of this machine: the worker itself, or an ``ssh`` that runs it elsewhere."""

    start_limit_s = START_LIMIT_S
    _line_limit = LINE_LIMIT

    def __init__(self, command: Sequence[str], *, is_ssh: bool) -> None:
        # A local worker starts the programs of a stdio target, so it has the folder of the user.
        super().__init__(spawn_group(command, cwd=Path.cwd()))
        self._is_ssh = is_ssh
        self._lines = queue.Queue(MOST_WAITING_LINES)
        for thread in self._threads:
            thread.start()

    @property
    def lines(self) -> queue.Queue[bytes | None]:
        return self._lines

    def next_line(self, limit_s: float) -> bytes | None:
        try:
            return self._next_line(limit_s, "the driver")
        except ProgramHung:
            raise TimeoutError from None

    def send(self, line: bytes) -> None:
        self._stdin.write(line)
        self._stdin.flush()

    def end_input(self) -> None:
        self._ask_to_end()

    def kill(self) -> None:
        kill_group(self._process)
        self._kill()

    def end_reason(self) -> str:
        has_exited = wait_exit(self._process, CLOSE_LIMIT_S)
        self._kill()
        code = self._process.returncode
        how = f"was ended by {signal_name(-code)}" if code < 0 else f"exited with code {code}"
        lines = [line.strip() for line in self.stderr_tail.splitlines() if line.strip()]
        if code == SSH_FAILED and self._is_ssh and not lines:
            return "the connection ended (ssh has exit code 255): the worker was killed, or its host is gone"
        return f"it {how if has_exited else 'closed its output'}" + (f": {lines[-1]}" if lines else "")

    def _kill(self) -> None:
        self._ignores_stdout = True
        # The thread that reads may wait for room.
        with contextlib.suppress(queue.Empty):
            while True:
                self._lines.get_nowait()
        super()._kill()


class ConnectedChannel(ABC):
    """Base class of channels that connect to a worker. A thread connects and reads, so that workers start at once."""

    start_limit_s = START_LIMIT_S

    def __init__(self) -> None:
        self.lines: queue.Queue[bytes | None] = queue.Queue(MOST_WAITING_LINES)
        self._is_closed = threading.Event()
        """Whether the driver gave the connection up."""
        self._reason = "it closed the connection"
        self._thread = threading.Thread(target=self._read_lines, name="mcpace-worker", daemon=True)
        self._thread.start()

    @abstractmethod
    def _connect(self) -> IO[bytes]:
        """Connects to the worker, within the limit of the start. Returns the worker's output.

        Raises :class:`LabError` or :class:`OSError`.
        """

    @abstractmethod
    def send(self, line: bytes) -> None:
        """Sends a line."""

    @abstractmethod
    def end_input(self) -> None:
        """Ends the worker's input. Harmless where there is no connection."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Ends the connection and the worker. Called once or more, also during :meth:`_connect`."""

    def next_line(self, limit_s: float) -> bytes | None:
        try:
            return self.lines.get(timeout=limit_s)
        except queue.Empty:
            raise TimeoutError from None

    def kill(self) -> None:
        self._is_closed.set()
        self._disconnect()
        self._thread.join(CLOSE_LIMIT_S)

    def close(self, limit_s: float) -> None:
        self.end_input()
        self._thread.join(limit_s)
        self.kill()

    def end_reason(self) -> str:
        return self._reason

    def _read_lines(self) -> None:
        try:
            output = self._connect()
            while line := output.readline(LINE_LIMIT):
                self._put(line)
        except LabError as problem:
            self._reason = str(problem)
        except (OSError, ValueError) as error:
            self._reason = f"its connection failed: {getattr(error, 'strerror', None) or error}"
        finally:
            self._put(None)

    def _put(self, line: bytes | None) -> None:
        """Waits for room, until the connection is given up."""
        while True:
            try:
                self.lines.put(line, timeout=LOOK_S)
                break
            except queue.Full:
                if self._is_closed.is_set():
                    break
