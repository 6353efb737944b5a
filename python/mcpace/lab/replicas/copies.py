"""Copies of a server, each a program with a port of its own."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from mcpace import _core
from mcpace.lab.defaults import PORT_VARIABLE
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.replicas.balancer import Backend, Balancer, backend_of
from mcpace.lab.servers.listening_program import ListeningProgram

PLACE = "{port}"
END_LIMIT_S = 3.0


@dataclass
class Copy:
    """A running copy and its place in the balancer."""

    backend: Backend
    program: ListeningProgram


class Copies:
    """All copies of one server. Use as a context manager: its end ends every copy."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        variable: str = PORT_VARIABLE,
        environment: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._command = tuple(command)
        self._variable = variable
        self._environment = dict(environment)
        self.running: list[Copy] = []
        self.path = "/mcp"
        """Path of the endpoint, which all copies share."""
        self._last_number = 0

    def start(self, balancer: Balancer | None = None) -> Copy:
        """Starts a copy, waits until it answers, and adds it to the balancer.

        Raises :class:`LabError` where it does not start, and :class:`UsageProblem` where copies share a port.
        """
        self._last_number += 1
        number, port = self._last_number, _free_port()
        command = [word.replace(PLACE, str(port)) for word in self._command]
        try:
            program = ListeningProgram.start(
                command, self._connect, env={**self._environment, self._variable: str(port)}
            )
        except LabError as problem:
            if number == 1:
                raise
            raise UsageProblem(
                f"copy {number} did not start beside the others: {problem}. Each copy needs a port of its own: write "
                f"{PLACE} in the command, or let the program read the variable {self._variable} (--port-variable)"
            ) from problem
        parts = urlsplit(program.url)
        taken = [one for one in self.running if one.backend.port == parts.port]
        if taken:
            program.close()
            raise UsageProblem(
                f"copies {taken[0].backend.number} and {number} listen at the same port {parts.port}: write {PLACE} in "
                f"the command, or let the program read the variable {self._variable} (--port-variable)"
            )
        copy = Copy(backend_of(number, program.url), program)
        self.path = parts.path
        self.running.append(copy)
        if balancer is not None:
            balancer.add(copy.backend)
        return copy

    def kill(self, copy: Copy) -> None:
        """Kills a copy at once, as a crash does. The balancer learns of it by refused connections."""
        self.running.remove(copy)
        copy.program.crash()

    def end(self, copy: Copy, balancer: Balancer) -> None:
        """Takes a copy out of the balancer and ends it as a rolling update does: SIGTERM, then SIGKILL."""
        balancer.remove(copy.backend)
        self.running.remove(copy)
        copy.program.terminate(END_LIMIT_S)

    def copy_of(self, backend: Backend | None) -> Copy:
        """The copy of a backend; the first copy for none."""
        return next((one for one in self.running if one.backend is backend), self.running[0])

    def __enter__(self) -> Copies:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.ExitStack() as stack:
            for copy in self.running:
                stack.callback(copy.program.close, END_LIMIT_S)

    def _connect(self, url: str, limit_s: float) -> None:
        client = _core.Client(url, limit_s=limit_s)
        try:
            client.connect()
        finally:
            client.disconnect()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
