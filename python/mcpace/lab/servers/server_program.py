"""An adapter's server program: started with options, ready when it says so, ended within a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from signal import Signals
from typing import Any, Literal

from mcpace.lab.environments.environment import Environment
from mcpace.lab.errors import LabError
from mcpace.lab.processes.adapter_process import READY_LIMIT_S, AdapterProcess, spawn
from mcpace.lab.processes.child_processes import has_exited, signal_group

State = Literal["stateless", "stateful"]

MOST_NOTES = 20


@dataclass(frozen=True)
class Ready:
    """What a server said when it listened."""

    sdk: str
    version: str
    """Of the SDK, as the program found it."""
    pid: int
    """The server's own word. The process that was started is `ServerProgram.pid`."""
    url: str
    workers: int
    """Processes that serve."""
    notes: tuple[str, ...]
    """Sentences for the report."""


class ServerProgram(AdapterProcess):
    """A running server program. Made by `start`; use as a context manager or call `close`."""

    ready: Ready

    @classmethod
    def start(
        cls, command: Sequence[str], *, mode: str, state: State = "stateless", host: str = "127.0.0.1", port: int = 0,
        environment: Environment | None = None, env: Mapping[str, str] | None = None, prefix: Sequence[str] = (),
        ready_limit_s: float = READY_LIMIT_S,
    ) -> ServerProgram:  # fmt: skip
        """Starts a server and waits until it listens.

        `command` is the adapter's; `prefix` is a command that ends by executing the words after it: a cap on
        processors or memory. `env` is added to ours. Raises `Unsupported` where this version can't do that (exit code
        127), `ProgramDied`, `ProgramHung` or `ProgramRubbish` otherwise; nothing is left running then.
        """
        options = ["--host", host, "--port", str(port), "--mode", mode, "--state", state]
        place = environment.path if environment is not None else None
        program = cls(spawn([*prefix, *command, *options], cwd=place, env=env))
        told = program._await_ready(ready_limit_s)
        try:
            program.ready = read_ready(told)
        except (KeyError, TypeError, ValueError):
            problem = program._rubbish(repr(told).encode(), "ready")
            program._kill()
            raise problem from None
        # It has nothing more to say; what libraries print all the same isn't kept.
        program._heard = True
        return program

    @property
    def url(self) -> str:
        return self.ready.url

    @property
    def pid(self) -> int:
        """The process that was started, which leads the group of everything that it starts."""
        return self._process.pid

    def signal(self, number: Signals) -> None:
        """To it and to everything in its group. Harmless when it has gone."""
        if self._process.returncode is None:
            signal_group(self._process, number)

    def death(self) -> LabError | None:
        """Why the server is gone; `None` while it runs. Once it is told, nothing of it is left."""
        return self._death("load") if has_exited(self._process) else None


def read_ready(told: dict[str, Any]) -> Ready:
    """The line's members. Raises `KeyError`, `TypeError` or `ValueError` where one isn't as described."""
    url = str(told["url"])
    if not url.startswith(("http://", "https://")):
        raise ValueError(url)
    return Ready(
        sdk=str(told["sdk"]),
        version=str(told["version"]),
        pid=int(told["pid"]),
        url=url,
        workers=int(told.get("workers", 1)),
        notes=tuple(str(note) for note in list(told.get("notes", ()))[:MOST_NOTES]),
    )
