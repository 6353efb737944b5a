"""The worker that measures layers, as a process: it runs in the user's environment, which may lack all of ours.

``worker/mcpace_layers/program.py`` defines the worker's messages and their order.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Literal

from mcpace.lab.errors import UnknownName, Unreachable, UsageProblem
from mcpace.lab.processes.adapter_process import READY_LIMIT_S, AdapterProcess, spawn

WORKER = Path(__file__).parent / "worker" / "__main__.py"
KNOWN = 12
"""Names that a sentence lists."""


class Worker(AdapterProcess):
    """A running worker. Made by :meth:`start`; use as a context manager or call :meth:`close`."""

    ready: dict[str, Any]
    """What it said of itself."""

    @classmethod
    def start(
        cls, python: str, mode: Literal["measure", "serve"], place: str, tool: str, arguments: dict[str, Any]
    ) -> Worker:
        """Starts it in this folder and waits until it says that it is ready.

        Raises :class:`UsageProblem` or :class:`Unreachable` with the worker's own sentence, and
        :class:`ProgramProblem` where it has none.
        """
        command = [python, str(WORKER), mode, place, tool, json.dumps(arguments)]
        # Bytes that Python compiles of the worker belong in no folder of ours.
        worker = cls(spawn(command, cwd=Path.cwd(), env={"PYTHONDONTWRITEBYTECODE": "1"}))
        try:
            for thread in worker._threads:
                thread.start()
            worker.ready = _checked(worker._next(READY_LIMIT_S, "ready"))
        except BaseException:
            worker._kill()
            raise
        return worker

    def ask(self, command: dict[str, Any], limit_s: float) -> dict[str, Any]:
        """One command's answer. Raises as :meth:`start`; after a problem of the worker's own it goes on."""
        name = str(command["cmd"])
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(json.dumps(command).encode() + b"\n")
            self._stdin.flush()
        try:
            answer = self._next(limit_s, name)
        except BaseException:
            self._kill()
            raise
        return _checked(answer)


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    if "problem" not in answer:
        return answer
    sentence, known = str(answer.get("message")), [str(name) for name in answer.get("known") or []]
    if answer["problem"] != "usage":
        raise Unreachable(sentence)
    raise _Usage(sentence, known) if known else UsageProblem(sentence)


class _Usage(UnknownName):
    """A name that isn't there, in the worker's own sentence."""

    def __init__(self, sentence: str, known: list[str]) -> None:
        more = ", …" if len(known) > KNOWN else ""
        UsageProblem.__init__(self, f"{sentence}; there are {', '.join(known[:KNOWN])}{more}")
        self.known = known
