"""An adapter's server program: starts it, waits for its ready line, and ends it in bounded time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcpace.lab.environments.environment import Environment
from mcpace.lab.processes.adapter_process import READY_LIMIT_S, AdapterProcess, spawn_group
from mcpace.system.process_groups import pause_group, resume_group

State = Literal["stateless", "stateful"]

MOST_NOTES = 20


@dataclass(frozen=True)
class Ready:
    """The server's ready line."""

    sdk: str
    version: str
    """Version of the SDK, as the program found it."""
    pid: int
    """Process id that the server reports. The started process is `ServerProgram.pid`."""
    url: str
    workers: int
    """Number of processes that serve."""
    notes: tuple[str, ...]
    """Sentences for the report."""


class ServerProgram(AdapterProcess):
    """A running server program, created by `start`. Use as a context manager or call `close`."""

    ready: Ready

    @classmethod
    def start(
        cls, command: Sequence[str], *, mode: str, state: State = "stateless", host: str = "127.0.0.1", port: int = 0,
        environment: Environment | None = None, env: Mapping[str, str] | None = None, prefix: Sequence[str] = (),
        ready_limit_s: float = READY_LIMIT_S,
    ) -> ServerProgram:  # fmt: skip
        """Starts a server and waits until it listens.

        `command` comes from the adapter. `prefix` is a command that executes the words after it, with limits on
        processors or memory. `env` is added to this process's environment. Raises `Unsupported` where the version lacks
        a requested feature (exit code 127), else `ProgramDied`, `ProgramHung` or `ProgramRubbish`. After an exception,
        the program is not running.
        """
        options = ["--host", host, "--port", str(port), "--mode", mode, "--state", state]
        place = environment.path if environment is not None else None
        program = cls(spawn_group([*prefix, *command, *options], cwd=place, env=env))
        ready = program._await_ready(ready_limit_s)
        try:
            program.ready = read_ready(ready)
        except (KeyError, TypeError, ValueError):
            problem = program._rubbish_problem(repr(ready).encode(), "ready")
            program._kill()
            raise problem from None
        # The ready line is the only message; output of libraries is dropped.
        program._ignores_stdout = True
        return program

    @property
    def url(self) -> str:
        return self.ready.url

    def pause(self) -> None:
        """Stops the process group until :meth:`resume`. Harmless after the program's exit."""
        if self._process.returncode is None:
            pause_group(self._process)

    def resume(self) -> None:
        """Continues the process group. Harmless after the program's exit."""
        if self._process.returncode is None:
            resume_group(self._process)


def read_ready(ready: dict[str, Any]) -> Ready:
    """Reads the ready line. Raises `KeyError`, `TypeError` or `ValueError` for a missing or invalid member."""
    url = str(ready["url"])
    if not url.startswith(("http://", "https://")):
        raise ValueError(url)
    return Ready(
        sdk=str(ready["sdk"]),
        version=str(ready["version"]),
        pid=int(ready["pid"]),
        url=url,
        workers=int(ready.get("workers", 1)),
        notes=tuple(str(note) for note in list(ready.get("notes", ()))[:MOST_NOTES]),
    )
