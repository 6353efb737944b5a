"""Process of the worker that measures layers. It runs in the user's environment, which may lack mcpace.

``worker/mcpace_layers/program.py`` defines the worker's messages and their order.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from mcpace.lab.errors import UnknownName, Unreachable, UsageProblem
from mcpace.lab.processes.adapter_process import READY_LIMIT_S, AdapterProcess, spawn_group

WORKER = Path(__file__).parent / "worker" / "__main__.py"
KNOWN = 12
"""Most names that a message lists."""


class Worker(AdapterProcess):
    """A running worker, created by :meth:`start`. Use as a context manager or call :meth:`close`."""

    ready: dict[str, Any]
    """The worker's ready message."""

    @classmethod
    def start(
        cls,
        python: str,
        mode: Literal["measure", "serve"],
        place: str,
        tool: str,
        arguments: dict[str, Any],
        *,
        environment: Mapping[str, str] | None = None,
    ) -> Worker:
        """Starts a worker in the current folder and waits for its ready message. A worker that only serves needs no
        tool. ``environment`` is added to this process's environment.

        Raises :class:`UsageProblem` or :class:`Unreachable` with the worker's own message, and :class:`ProgramProblem`
        where the worker gives none.
        """
        command = [python, str(WORKER), mode, place, tool, json.dumps(arguments)]
        # Python must not write the worker's bytecode into mcpace's folder.
        variables = {"PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
        worker = cls(spawn_group(command, cwd=Path.cwd(), env=variables))
        try:
            for thread in worker._threads:
                thread.start()
            worker.ready = _raise_problem(worker._next_message(READY_LIMIT_S, "ready"))
        except BaseException:
            worker._kill()
            raise
        return worker

    def send_command(self, command: dict[str, Any], limit_s: float) -> dict[str, Any]:
        """Sends one command and returns its answer. Raises like :meth:`start`; the worker survives its own problems."""
        name = str(command["cmd"])
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(json.dumps(command).encode() + b"\n")
            self._stdin.flush()
        try:
            answer = self._next_message(limit_s, name)
        except BaseException:
            self._kill()
            raise
        return _raise_problem(answer)


def _raise_problem(answer: dict[str, Any]) -> dict[str, Any]:
    if "problem" not in answer:
        return answer
    sentence, known = str(answer.get("message")), [str(name) for name in answer.get("known") or []]
    if answer["problem"] != "usage":
        raise Unreachable(sentence)
    raise _Usage(sentence, known) if known else UsageProblem(sentence)


class _Usage(UnknownName):
    """An unknown name, with the worker's own message."""

    def __init__(self, sentence: str, known: list[str]) -> None:
        more = ", …" if len(known) > KNOWN else ""
        UsageProblem.__init__(self, f"{sentence}; there are {', '.join(known[:KNOWN])}{more}")
        self.known = known
