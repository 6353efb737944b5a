"""Processor time and memory of a process and its descendants, from /proc.

Design constraint: Usage is read from outside, without help of the server, and too rarely to slow the server down.
Processor time is counted in the kernel's ticks (10 ms): the difference of two readings is exact to a few ticks. The
processor time of a process that has ended is added to its parent's once the parent has reaped it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from mcpace.system.processors import page_bytes, ticks_per_s

PROC = Path("/proc")
PERIOD_S = 0.2

TICKS = ticks_per_s()
PAGE = page_bytes()


@dataclass(frozen=True)
class Usage:
    """Resource use of a process tree at one moment."""

    cpu_s: float
    """Since each process's start."""
    rss_bytes: int
    """Pages that processes share are counted once for each of them."""
    processes: int


@dataclass(frozen=True)
class Process:
    parent: int
    cpu_ticks: int
    """Processor time of all its threads and of the children that it has reaped."""
    rss_pages: int


def read_usage(pid: int, proc: Path = PROC) -> Usage | None:
    """Reads the usage of ``pid`` and its descendants; ``None`` where ``pid`` has ended, or there is no /proc."""
    tree = process_tree(pid, proc).values()
    if not tree:
        return None
    return Usage(
        cpu_s=sum(process.cpu_ticks for process in tree) / TICKS,
        rss_bytes=sum(process.rss_pages for process in tree) * PAGE,
        processes=len(tree),
    )


def process_tree(pid: int, proc: Path = PROC) -> dict[int, Process]:
    """``pid`` and its descendants by process id; empty where ``pid`` has ended, or there is no /proc."""
    known = _running_processes(proc)
    if pid not in known:
        return {}
    children: dict[int, list[int]] = {}
    for number, process in known.items():
        children.setdefault(process.parent, []).append(number)
    tree, waiting = {}, [pid]
    while waiting:
        number = waiting.pop()
        tree[number] = known[number]
        waiting += children.get(number, [])
    return tree


def program_name(pid: int, proc: Path = PROC) -> str:
    """Name of the file that a process runs: ``python3.11``; empty where it can't be read."""
    try:
        return (proc / str(pid) / "exe").readlink().name
    except OSError:
        return ""


class UsageWatch:
    """Measures a process tree over the ``with`` block, by periodic readings."""

    def __init__(self, pid: int, period_s: float = PERIOD_S) -> None:
        self._pid = pid
        self._period_s = period_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._first = self._last = read_usage(pid)
        self._largest = self._first.rss_bytes if self._first else 0

    def __enter__(self) -> UsageWatch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()
        self._sample()

    @property
    def cpu_s(self) -> float | None:
        """Processor time between the first and the last reading; ``None`` where there was no reading."""
        if self._first is None or self._last is None:
            return None
        return max(self._last.cpu_s - self._first.cpu_s, 0.0)

    @property
    def rss_bytes(self) -> int | None:
        """Largest resident memory of all readings."""
        return self._largest or None

    def _run(self) -> None:
        while not self._over.wait(self._period_s):
            self._sample()

    def _sample(self) -> None:
        usage = read_usage(self._pid)
        if usage is not None:
            self._last = usage
            self._largest = max(self._largest, usage.rss_bytes)


def _running_processes(proc: Path) -> dict[int, Process]:
    known = {}
    try:
        names = [entry.name for entry in proc.iterdir()]
    except OSError:
        return {}
    for name in names:
        if name.isdecimal():
            try:
                text = (proc / name / "stat").read_text(errors="replace")
            except OSError:
                continue  # it has ended meanwhile
            if (process := _parse_stat(text)) is not None:
                known[int(name)] = process
    return known


def _parse_stat(text: str) -> Process | None:
    """proc_pid_stat(5). The second field is a name in parentheses, which may have any character in it."""
    fields = text.rpartition(")")[2].split()
    if len(fields) < 22 or fields[0] in "ZX":
        return None
    return Process(
        parent=int(fields[1]), cpu_ticks=sum(int(field) for field in fields[11:15]), rss_pages=int(fields[21])
    )
