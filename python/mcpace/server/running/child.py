"""One worker process, as its parent holds it: started, listened to, ended.

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
    """What a worker said of its start."""

    serves: bool
    facts: dict[str, Any]
    """Of one that serves: what, and where. Of one that can't: ``exit_code``; why, it said itself."""


class Child:
    """See the module."""

    def __init__(self, index: int, command: Sequence[str], order: str, descriptors: Sequence[int] = ()) -> None:
        """Starts it. ``order`` is the line that it is told; ``descriptors`` it inherits beside its own."""
        self.index = index
        self._socket, theirs = socket.socketpair()
        reading_end, self._tie = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(reading_end)],
                pass_fds=(theirs.fileno(), reading_end, *descriptors),
                # Ctrl-C in a terminal goes to a whole group: it is the parent who ends its workers, in order.
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
        # Fits the socket's buffer; a worker that died at once is noticed by its end.
        with contextlib.suppress(OSError):
            self._socket.send(order.encode() + b"\n")

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def fileno(self) -> int:
        """Readable when there is something to :meth:`hear`."""
        return self._socket.fileno()

    def hear(self) -> Report | None:
        """Its report, once all of it has come. Never waits.

        Raises ``EOFError`` where nothing will come any more.
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
        """How it ended, as ``subprocess`` says it; ``None`` while it lives."""
        return self._process.poll()

    def stop(self) -> None:
        """Asks it to finish what is in flight and end."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()

    def close(self) -> None:
        """Lets go of what belongs to one that has ended."""
        self._process.wait()
        self._socket.close()
        os.close(self._tie)


def ending(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
