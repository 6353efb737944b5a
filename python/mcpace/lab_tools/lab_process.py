"""Runs one command of the lab at a time, in a process of its own.

Design constraint: A run ends with its call. A time limit, a cancelled call and the end of the server interrupt the
command, then kill it, and then kill every process that it left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mcpace.lab import journal
from mcpace.lab.errors import LabError
from mcpace.lab.processes.strays import ended_strays
from mcpace.report.words.quantities import clean
from mcpace.system.process_groups import Child, ask_to_end, group_options, join_group, kill_group

RUN, PAGE = "run.json", "report.html"
GRACE_S = 5.0
"""Seconds from one signal to the next. The first one saves the results so far."""
REPORT_S = 0.5
"""Seconds between two reports of progress."""
JOURNAL_BYTES = 8_192
"""Bytes at the end of a journal that are read for its newest line."""
MOST_STDERR = 16_384
LONGEST_SENTENCE = 400

ReportProgress = Callable[[float, float, str], Awaitable[None]]
"""Receives seconds so far, the limit in seconds, and the step."""


class Busy(LabError):
    """Another experiment is running."""

    code = "busy"


class RunFailed(LabError):
    """The command ended without a run."""

    code = "run-failed"


@dataclass(frozen=True)
class LabCommand:
    """A command of the command line that writes a run."""

    words: tuple[str, ...]
    """The command and its options."""
    operands: tuple[str, ...]
    folder: Path
    """Folder of the run and its report."""
    limit_s: float
    memory_bytes: int | None = None
    """Limit of the address space; ``None`` for commands that start other programs."""

    @property
    def run(self) -> Path:
        """The run as JSON."""
        return self.folder / RUN

    def arguments(self) -> list[str]:
        """Arguments of the interpreter."""
        limit = "-" if self.memory_bytes is None else str(self.memory_bytes)
        outputs = (f"--out={self.run}", f"--html={self.folder / PAGE}")
        # -P: the current folder, from which -m would import, may have modules of a stranger.
        return ["-P", "-m", "mcpace.cli.supervised", limit, *self.words, *outputs, "--", *self.operands]


@dataclass(frozen=True)
class _Experiment:
    """The experiment that is running."""

    what: str
    started: float
    is_cancelled: Callable[[], bool]


class LabProcess:
    """The one experiment that may run at a time."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is the working folder of commands and of the programs that they start."""
        self._folder = folder
        self._current: _Experiment | None = None
        self._idle = asyncio.Event()

    async def check_idle(self) -> None:
        """Raises :class:`Busy` where an experiment is running. Waits for the end of an experiment whose call was
        cancelled, which takes a few seconds at most."""
        if self._current is not None and self._current.is_cancelled():
            await self._idle.wait()
        if self._current is not None:
            running_s = time.monotonic() - self._current.started
            raise Busy(
                f"busy: {self._current.what} has been running for {running_s:.0f} s, and one experiment runs at a "
                "time; call again when it has ended, or cancel it"
            )

    @asynccontextmanager
    async def reserve(self, what: str, is_cancelled: Callable[[], bool]) -> AsyncIterator[None]:
        """Reserves the machine for one experiment. ``is_cancelled`` tells whether its call was cancelled.

        Raises :class:`Busy` where another one is running.
        """
        await self.check_idle()
        self._current = _Experiment(what, time.monotonic(), is_cancelled)
        self._idle.clear()
        try:
            yield
        finally:
            self._current = None
            self._idle.set()

    async def run(self, command: LabCommand, report: ReportProgress) -> str:
        """Runs a command to its end, inside :meth:`reserve`. Returns the reason of a failure that a run was saved for;
        empty without one.

        Raises :class:`RunFailed` where no run was saved.
        """
        with ended_strays():
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *command.arguments(),
                cwd=self._folder,
                env={**os.environ, "NO_COLOR": "1"},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                **group_options(private_files=True),
            )
            child = process._transport.get_extra_info("subprocess")  # type: ignore[attr-defined]
            join_group(child)
            errors = asyncio.create_task(_last_note(process.stderr))
            try:
                is_late = not await _wait_with_progress(process, command, report)
            finally:
                await _end(process, child)
        # A descendant that lives on may hold the other end of stderr.
        await asyncio.wait({errors}, timeout=REPORT_S)
        sentence = errors.result() if errors.done() else ""
        errors.cancel()
        if is_late:
            sentence = f"the time limit of {command.limit_s:.0f} s was reached"
        if not command.run.exists():
            if process.returncode is not None and process.returncode < 0 and not is_late:
                sentence = f"the command was ended by signal {-process.returncode}"
            raise RunFailed(sentence or f"the command ended with exit code {process.returncode}")
        return sentence if is_late or process.returncode not in (0, 1, 4) else ""


async def _wait_with_progress(process: asyncio.subprocess.Process, command: LabCommand, report: ReportProgress) -> bool:
    """Waits for the process and reports progress. Returns whether it ended within the limit."""
    started = time.monotonic()
    exited = asyncio.ensure_future(process.wait())
    try:
        while not exited.done():
            elapsed_s = time.monotonic() - started
            if elapsed_s >= command.limit_s:
                return False
            await report(elapsed_s, command.limit_s, _newest_step(command.run))
            await asyncio.wait({exited}, timeout=min(REPORT_S, command.limit_s - elapsed_s))
        return True
    finally:
        exited.cancel()


async def _end(process: asyncio.subprocess.Process, child: Child) -> None:
    """Ends the process in bounded time: asks it twice, then kills its group."""
    for end in (ask_to_end, ask_to_end, kill_group):
        if process.returncode is not None:
            return
        end(child)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_S)


async def _last_note(stderr: asyncio.StreamReader | None) -> str:
    """The last sentence that the command wrote."""
    assert stderr is not None, "a pipe"
    kept = b""
    while chunk := await stderr.read(MOST_STDERR):
        kept = (kept + chunk)[-MOST_STDERR:]
    lines = [line for line in kept.decode(errors="replace").splitlines() if line.strip()]
    notes = [line.removeprefix("mcpace: ") for line in lines if line.startswith("mcpace: ")]
    return clean((notes or lines or [""])[-1], LONGEST_SENTENCE)


def _newest_step(run: Path) -> str:
    """Step that the journal of a run names last; empty where there is none."""
    try:
        with journal.journal_path(run).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - JOURNAL_BYTES))
            lines = file.read(JOURNAL_BYTES).splitlines()
    except OSError:
        return ""
    for line in reversed(lines):
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict) and (step := event.get("step") or event.get("preparing")):
                return clean(step, 120)
    return ""
