"""Samples of a process beside a recording: processor time, memory, threads.

Design constraint: Sampling reads one small file of /proc from outside, and rarely, so that it disturbs neither the
process nor the timed calls. Processor time is counted in the kernel's ticks (10 ms). Without /proc there is no sample.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mcpace import _core
from mcpace.system.processors import page_bytes, ticks_per_s

PERIOD_S = 0.25
MOST_SAMPLES = 20_000
"""Samples of more than an hour. A longer recording keeps every second sample, then every fourth, and so on."""

PROC = Path("/proc")
NANOS_PER_TICK = 1_000_000_000 // ticks_per_s()
PAGE = page_bytes()

Sample = tuple[int, int, int, int]
"""Clock and processor time in nanoseconds, resident bytes, threads."""


@dataclass
class Watched:
    """One watched process and its samples."""

    of: Literal["client", "server"]
    pid: int
    samples: list[Sample]


class ProcessSamples:
    """Samples processes periodically until it is closed. Use as a context manager; add processes with `watch`."""

    def __init__(
        self, period_s: float = PERIOD_S, proc: Path = PROC, children_are: Literal["client", "server"] | None = None
    ) -> None:
        """``children_are``: role of this process's children, which are then found and watched automatically."""
        self._period_s = period_s
        self._proc = proc
        self._children_are = children_are
        self.finds_children = True
        """Whether children that appear now are watched."""
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._watched: list[Watched] = []
        self._alive: list[Watched] = []
        self._thread = threading.Thread(target=self._run, name="mcpace-samples", daemon=True)

    def __enter__(self) -> ProcessSamples:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Takes a last sample and stops. Closing twice is harmless."""
        if not self._over.is_set():
            self._over.set()
            if self._thread.is_alive():
                self._thread.join()
            self.sample_all()

    def watch_process(self, of: Literal["client", "server"], pid: int) -> None:
        """Samples a process now, then each period until the process ends."""
        watched = Watched(of, pid, [])
        with self._lock:
            self._watched.append(watched)
            self._alive.append(watched)
        self.sample_all()

    def sample_all(self) -> None:
        """Samples every watched process now."""
        with self._lock:
            self._alive = [watched for watched in self._alive if self._sample_process(watched)]

    @property
    def has_processes(self) -> bool:
        """Whether any process was watched."""
        with self._lock:
            return bool(self._watched)

    def add_to(self, recording: _core.Recording) -> None:
        """Adds all samples to a recording."""
        with self._lock:
            for watched in self._watched:
                recording.add_samples(watched.of, watched.pid, watched.samples)

    def _run(self) -> None:
        while not self._over.wait(self._period_s):
            self._find_children()
            self.sample_all()

    def _find_children(self) -> None:
        if self._children_are is None or not self.finds_children:
            return
        known = {watched.pid for watched in self._watched}
        for pid in child_pids(self._proc):
            if pid not in known:
                self.watch_process(self._children_are, pid)

    def _sample_process(self, watched: Watched) -> bool:
        sample = read_sample(watched.pid, self._proc)
        if sample is None:
            return False
        watched.samples.append(sample)
        if len(watched.samples) > MOST_SAMPLES:
            del watched.samples[1:-1:2]
        return True


def child_pids(proc: Path = PROC) -> list[int]:
    """Process ids of this process's children; empty where the system doesn't list them."""
    pids = []
    for file in (proc / "self" / "task").glob("*/children"):
        with contextlib.suppress(OSError):
            pids += [int(pid) for pid in file.read_text().split()]
    return pids


def read_sample(pid: int, proc: Path = PROC) -> Sample | None:
    """Resource use of a process up to now; ``None`` after its end. See proc_pid_stat(5)."""
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The second field is a name in parentheses, which may have any character in it.
    fields = text.rpartition(")")[2].split()
    if len(fields) < 22 or fields[0] in "ZX":
        return None
    user, system = int(fields[11]), int(fields[12])
    threads, pages = int(fields[17]), int(fields[21])
    return time.perf_counter_ns(), (user + system) * NANOS_PER_TICK, pages * PAGE, threads
