"""The parent's view of one worker process: starting it, reading its report, ending it.

A worker gets two descriptors as its last arguments: a socket, on which one line of JSON tells it what to do and one
line of JSON comes back when it serves or can't (:class:`Report`), and a pipe that ties it to its parent
(:mod:`.lifeline`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_REPORT = 1 << 20


@dataclass(frozen=True, slots=True)
class Report:
    """A worker's report on its start."""

    serves: bool
    facts: dict[str, Any]
    """A worker that serves reports its components and its address. A worker that can't serve reports ``exit_code``,
    after it has printed the reason itself."""


class Child:
    """One worker process."""

    def __init__(self, index: int, command: Sequence[str], order: str, descriptors: Sequence[int] = ()) -> None:
        """Starts the process. ``order`` is the line that it receives; it inherits ``descriptors`` beside its own."""
        self.index = index
        self._socket, theirs = socket.socketpair()
        reading_end, self._tie = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(reading_end)],
                pass_fds=(theirs.fileno(), reading_end, *descriptors),
                # Ctrl-C in a terminal reaches the whole process group, but the parent ends its workers in order.
                process_group=0,
            )
        except BaseException:
            self._socket.close()
            os.close(self._tie)
            raise
        finally:
            theirs.close()
            os.close(reading_end)
        self._said = b""
        self._socket.setblocking(False)
        # The line fits the socket's buffer. A worker that dies at once is noticed by its exit.
        with contextlib.suppress(OSError):
            self._socket.send(order.encode() + b"\n")

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    def fileno(self) -> int:
        """A descriptor that is readable when :meth:`hear` has input."""
        return self._socket.fileno()

    def hear(self) -> Report | None:
        """Returns the worker's report once it is complete, else ``None``. Never blocks.

        Raises ``EOFError`` at the end of the worker's output.
        """
        try:
            part = self._socket.recv(65_536)
        except BlockingIOError:
            return None
        except OSError as error:
            raise EOFError from error
        if not part or len(self._said) > LONGEST_REPORT:
            raise EOFError
        self._said += part
        text, end, _ = self._said.partition(b"\n")
        if not end:
            return None
        facts = json.loads(text)
        return Report(bool(facts.pop("serves")), facts)

    def ended(self) -> int | None:
        """The exit status in the form of ``subprocess``; ``None`` while the process runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Asks the worker to finish the calls in flight and exit."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the process."""
        self._process.kill()

    def close(self) -> None:
        """Closes the descriptors of a process that has ended."""
        self._process.wait()
        self._socket.close()
        os.close(self._tie)


def describe_exit(status: int) -> str:
    """A phrase that says how a process ended."""
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
