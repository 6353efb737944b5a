"""Watch of the programs that run while servers start: from a package runner to the server's own program.

Design constraint: programs are seen from outside, in /proc, by readings every few milliseconds. A program that runs for
a shorter time is not seen. Without /proc nothing is seen, and a start has fewer parts.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from mcpace.lab.processes.process_samples import PAGE, PROC, child_pids
from mcpace.lab.processes.runners import SHELL, runner_name

PERIOD_S = 0.008
MEMORY_EVERY = 16
"""Memory is read in every so many readings."""
DEEPEST = 8
"""Generations of processes that are watched below each child."""


@dataclass
class SeenProcess:
    """One process below a watched child."""

    parent: int
    programs: list[tuple[int, str, tuple[str, ...]]] = field(default_factory=list)
    """Clock in nanoseconds, path, and words of the command of each program that the process ran."""
    last_ns: int = 0
    """Clock of the last reading in which it ran."""


@dataclass(frozen=True)
class ProgramStart:
    """The start of a server's own program."""

    at_ns: int | None
    """Clock in nanoseconds; ``None`` where the host's first program is the server's own."""
    path: str
    words: tuple[str, ...]
    runner: str
    """Name of the package runner or shell before it; empty where there was none."""


class StartWatch:
    """Watches all descendants of this process for the time of the ``with`` block."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._seen: dict[int, dict[int, SeenProcess]] = {}
        """Processes by process id, for each child of this process."""
        self._largest: dict[int, int] = {}
        """Largest memory of each child with its descendants, in bytes."""
        self._thread = threading.Thread(target=self._run, name="mcpace-starts", daemon=True)

    def __enter__(self) -> StartWatch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    def rss_bytes(self, child: int) -> int | None:
        """Largest memory of ``child`` and its descendants; ``None`` where it was not read."""
        with self._lock:
            return self._largest.get(child)

    def program_start(self, child: int, until_ns: int) -> ProgramStart | None:
        """The start of the program that served at ``until_ns``; ``None`` where ``child`` was not seen."""
        with self._lock:
            processes = {
                pid: SeenProcess(
                    one.parent, [program for program in one.programs if program[0] <= until_ns], one.last_ns
                )
                for pid, one in self._seen.get(child, {}).items()
            }
        processes = {pid: one for pid, one in processes.items() if one.programs}
        if child not in processes:
            return None
        pid, runner, is_first = child, "", True
        while True:
            for _, path, words in processes[pid].programs:
                runner = _better_runner(runner, runner_name(path, words))
            path, words = processes[pid].programs[-1][1:]
            below = [number for number, one in processes.items() if one.parent == pid and number != pid]
            alive = [number for number in below if processes[number].last_ns >= until_ns] or below
            if not runner_name(path, words) or not alive:
                break
            pid, is_first = max(alive, key=lambda number: processes[number].programs[0][0]), False
        at_ns = processes[pid].programs[-1][0]
        is_own = is_first and len(processes[pid].programs) == 1
        return ProgramStart(None if is_own else at_ns, path, words, runner if not is_own else "")

    def _run(self) -> None:
        number = 0
        while not self._over.wait(PERIOD_S):
            number += 1
            for child in child_pids(self._proc):
                self._read(child, number % MEMORY_EVERY == 0)

    def _read(self, child: int, reads_memory: bool) -> None:
        waiting, memory = [(child, os.getpid(), 0)], 0
        while waiting:
            pid, parent, depth = waiting.pop()
            place, now = self._proc / str(pid), time.monotonic_ns()
            try:
                path = str((place / "exe").readlink())
                words = tuple((place / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0"))
                memory += int((place / "statm").read_text().split()[1]) * PAGE if reads_memory else 0
                tasks = [task.name for task in (place / "task").iterdir()]
            except (OSError, IndexError, ValueError):
                continue  # it has ended meanwhile
            with self._lock:
                seen = self._seen.setdefault(child, {}).setdefault(pid, SeenProcess(parent))
                if not seen.programs or _is_other_program(seen.programs[-1][1:], (path, words)):
                    seen.programs.append((now, path, words))
                elif not any(seen.programs[-1][2]):
                    # A process that is about to run a program has no command for a moment.
                    seen.programs[-1] = (seen.programs[-1][0], path, words)
                seen.last_ns = now
            if depth < DEEPEST:
                waiting += [(number, pid, depth + 1) for task in tasks for number in self._children(place, task)]
        if memory:
            with self._lock:
                self._largest[child] = max(self._largest.get(child, 0), memory)

    @staticmethod
    def _children(place: Path, task: str) -> list[int]:
        try:
            return [int(number) for number in (place / "task" / task / "children").read_text().split()]
        except (OSError, ValueError):
            return []


def _better_runner(known: str, other: str) -> str:
    """A package runner says more than a shell, and the first says more than those that it starts."""
    return other if not known or (known == SHELL and other) else known


def _is_other_program(before: tuple[str, tuple[str, ...]], now: tuple[str, tuple[str, ...]]) -> bool:
    """Whether a process runs another program. A server that changes its own title runs the same one."""
    return before[0] != now[0] or (before[1] != now[1] and bool(runner_name(*before)) and not runner_name(*now))
