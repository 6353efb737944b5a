"""Starts the program of a target for the time of an experiment.

A program that mcpace starts is a command that listens (``serve:COMMAND``) or a server object (``MODULE:SERVER``). A
server object is served over HTTP by its own SDK, in the interpreter of its environment. A command over stdio is started
by each client, and only its environment changes here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mcpace import _core
from mcpace.lab.errors import LabError
from mcpace.lab.processes.strays import ended_strays
from mcpace.lab.targets import Target, read_certificate

if TYPE_CHECKING:
    from mcpace.lab.inside.evidence import InsideEvidence
    from mcpace.lab.servers.listening_program import Connect

DEATH_LIMIT_S = 0.2
"""Time limit for the exit of a program after a failed call. An exit within it explains the failure."""


class Notes(Protocol):
    """Receiver of messages about the program."""

    def preparing(self, what: str) -> None:
        """A step before the experiment begins."""

    def note(self, text: str) -> None:
        """Something that the user should know."""


@contextmanager
def start_target(
    target: Target, notes: Notes, evidence: InsideEvidence | None = None, extra_root: Path | None = None
) -> Iterator[Target]:
    """Starts the target's program, if it has one, and yields the target with the program's URL.

    With ``evidence``, the program is started with its instrumentation. Raises :class:`LabError` where the program can't
    be started, or ended during the experiment and so made it fail.
    """
    own = evidence.environment(target.environment) if evidence is not None else list(target.environment)
    target = replace(target, environment=tuple(own))
    if target.program is None:
        if evidence is not None:
            evidence.watch(os.getpid())
        yield target
        return
    # Imported late: load starts its first request before most modules are imported.
    from mcpace.lab.layers.worker_process import Worker
    from mcpace.lab.servers.listening_program import ListeningProgram

    notes.preparing(f"starting {target.name}")
    program: Worker | ListeningProgram
    environment = dict(own)
    # Programs that the program leaves behind are ended with it.
    with ended_strays():
        if target.program.server_object:
            program = Worker.start(
                target.program.python, "serve", target.program.server_object, "", {}, environment=environment
            )
            url = str(program.ready["url"])
        else:
            connect = _connector(target, extra_root)
            program = ListeningProgram.start(target.program.command, connect, url=target.url, env=environment)
            url = program.url
        with program:
            if evidence is not None:
                evidence.watch(program.pid)
            try:
                yield replace(target, url=url, program=None)
            except LabError as problem:
                if (death := program.exit_error("a call", DEATH_LIMIT_S)) is not None:
                    raise death from problem
                raise
            if (death := program.exit_error("a call")) is not None:
                notes.note(str(death))


def _connector(target: Target, extra_root: Path | None) -> Connect:
    """A function that connects to a URL with the target's credentials."""
    certificate = read_certificate(extra_root) if extra_root is not None else None

    def connect(url: str, limit_s: float) -> None:
        client = _core.Client(
            url,
            auth=target.auth if target.auth == "bearer" else "none",
            token=target.token,
            limit_s=limit_s,
            extra_root=certificate,
            headers=list(target.headers),
        )
        try:
            client.connect()
        finally:
            client.disconnect()

    return connect
