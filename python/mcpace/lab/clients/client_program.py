"""An adapter's client program, which reads commands and writes answers (adapters/README.md)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpace.lab.environments.environment import Environment
from mcpace.lab.processes.adapter_process import READY_LIMIT_S, AdapterProcess, spawn_group


@dataclass(frozen=True)
class Answer:
    op: str
    ok: bool
    start_ns: int
    end_ns: int
    """CLOCK_MONOTONIC. Both times are 0 where nothing was started."""
    result: dict[str, Any] = field(default_factory=dict)
    error_kind: str | None = None
    """`unsupported`, `timeout`, `auth`, `connection`, `protocol` or `other`."""
    error_message: str | None = None


class ClientProgram(AdapterProcess):
    """A running client program, created by `start`. Use as a context manager or call `close`."""

    version = ""
    """Version of the SDK, as the program found it."""

    @classmethod
    def start(
        cls, command: Sequence[str], *, environment: Environment | None = None, ready_limit_s: float = READY_LIMIT_S
    ) -> ClientProgram:
        """Starts a program and waits for its ready line.

        Raises `Unsupported` for exit code 127, else `ProgramDied`, `ProgramHung` or `ProgramRubbish`.
        """
        program = cls(spawn_group(command, cwd=environment.path if environment is not None else None))
        ready = program._await_ready(ready_limit_s)
        program.version = str(ready.get("version", ""))
        return program

    def send_command(self, command: dict[str, Any], timeout_s: float) -> Answer:
        """Sends one command and waits for its answer. Kills the program before any exception.

        Raises `ProgramDied`, `ProgramHung`, `ProgramRubbish`, or `Unsupported` for exit code 127.
        """
        name = str(command.get("cmd"))
        try:
            # The pipe of a dead program breaks here; reading then finds the reason.
            with contextlib.suppress(BrokenPipeError):
                self._stdin.write(json.dumps(command).encode() + b"\n")
                self._stdin.flush()
            return self.parse_answer(self._next_message(timeout_s, name), name)
        except BaseException:
            self._kill()
            raise

    def parse_answer(self, value: dict[str, Any], name: str) -> Answer:
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
            raise self._rubbish_problem(json.dumps(value).encode(), name) from None
        if answer.op != name or answer.end_ns < answer.start_ns:
            raise self._rubbish_problem(json.dumps(value).encode(), name)
        return answer
