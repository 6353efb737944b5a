"""Helpers of the proofs: releases as clients behind the recorder, releases as servers, and their findings."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mcpace import _core
from mcpace.lab.adapters import subject as adapter_subject
from mcpace.lab.adapters.adapter import Role
from mcpace.lab.clients.plan import Plan, Settings
from mcpace.lab.clients.run_clients import run_clients
from mcpace.lab.environments import environment as release_environment
from mcpace.lab.progress import Silent
from mcpace.lab.servers.server_program import ServerProgram, State
from mcpace.lab.targets import Target
from mcpace.report.model.run import Run
from support import ports
from support.echo_server import wait_for_port
from support.finding_scenes import OF_THE_MACHINE
from support.kept_runs import keep_run


def codes(
    target: Target, *subjects: str, trials: int = 4, fault: str | None = None, hold_s: float = 0.3
) -> dict[str, set[str]]:
    """Findings of each release. Every release must have a successful trial."""
    settings = Settings(trials=trials, hold_s=hold_s, faults=(fault,) if fault else ())
    run = run_clients(Plan(subjects, (target,), settings), Silent())
    assert not [case.error or case.failures or case.unsupported for case in run.cases if not case.trials_s]
    return by_subject(run)


def by_subject(run: Run) -> dict[str, set[str]]:
    """Returns the codes of a run's findings by subject."""
    keep_run(run)
    found: dict[str, set[str]] = {}
    for case in run.cases:
        of_subject = found.setdefault(case.subject.label(), set())
        of_subject.update({finding.code for finding in case.findings} - OF_THE_MACHINE)
    return found


@contextmanager
def server(release: str, mode: str, state: State, *options: str) -> Iterator[ServerProgram]:
    """Runs an adapter's server program in an environment of the release's time. ``options`` go to the interpreter."""
    resolved = adapter_subject.resolve_subject(f"{release}:{mode}", role=Role.SERVER)
    environment = release_environment.ensure_environment(resolved.adapter, resolved.version, role=Role.SERVER)
    program, *words = resolved.adapter.server_command(environment)
    command = [program, *options, *words]
    with ServerProgram.start(command, mode=mode, state=state, environment=environment) as running:
        yield running


@contextmanager
def listening(command: Sequence[str], **options: object) -> Iterator[tuple[int, int]]:
    """Runs a program that takes its port as the last argument. Yields the port and the process once it listens."""
    port = ports.free()
    with subprocess.Popen([*command, str(port)], stdin=subprocess.DEVNULL, **options) as program:  # type: ignore[call-overload]
        try:
            wait_for_port(port, program)
            yield port, program.pid
        finally:
            program.terminate()


def record_release(subject: str, target: Target, folder: Path, trials: int = 4) -> _core.Recording:
    """Records a release's trials at a target."""
    settings = Settings(trials=trials, keep_recordings=folder)
    run = run_clients(Plan((subject,), (target,), settings), Silent())
    assert not [case.error or case.failures or case.unsupported for case in run.cases if not case.trials_s]
    [name] = run.recordings.values()
    return _core.Recording.load(str(folder / name))


def interpreter(release: str) -> str:
    """Returns the Python of an environment with a release of a Python SDK."""
    resolved = adapter_subject.resolve_subject(release)
    return release_environment.ensure_environment(resolved.adapter, resolved.version).places["python"]
