"""A cap on the processors and the memory of each server under test.

Where cgroup v2 lets us, a server gets a control group of its own: a share of processor time (``cpu.max``), a limit of
memory (``memory.max``) without swap. Elsewhere it gets as many processors as it may use (affinity) and no limit of
memory. A comparison says which it was.

A group can only be made below one whose controllers are handed down (``cgroup.subtree_control``) and into which we may
move processes, which takes the right to write to the nearest group above both: root on the machine itself, or whoever a
systemd user session delegated to. In most containers it is nobody.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mcpace.lab.errors import UsageProblem

LIMIT_EXEC = Path(__file__).with_name("limit_exec.py")
PERIOD_US = 100_000
"""Over which a share of processor time is counted: the kernel's default."""
LEAST_MEMORY = 16 * 1024 * 1024
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
REMOVE_LIMIT_S = 2.0

By = Literal["cgroup", "affinity"]


@dataclass(frozen=True)
class Cap:
    """What every server is held to, and by what."""

    cpus: float
    memory_bytes: int | None
    """What was asked for; in force with ``cgroup`` only."""
    by: By
    cores: tuple[int, ...]
    """Processors that servers may use."""
    others: tuple[int, ...]
    """Processors that are left for the load and what stands behind the servers; none where servers have all."""
    parent: Path | None = field(default=None, repr=False)
    """The group under which theirs are made."""

    @property
    def limits_memory(self) -> bool:
        """Whether the limit of memory is in force."""
        return self.by == "cgroup" and self.memory_bytes is not None


def settle(cpus: float, memory_bytes: int | None, *, root: Path | None = None) -> Cap:
    """How a cap can be put in force on this machine; ``root`` is where cgroup v2 is mounted, unless looked for.

    Raises :class:`UsageProblem` for more processors than there are, or a part of one where only whole ones can be had.
    """
    own = allowed()
    if cpus > len(own):
        raise UsageProblem(f"--cpus {cpus:g} is more than the {len(own)} that this machine lets us use")
    parent = _delegated(root)
    if parent is not None:
        # The quota counts time, wherever it is spent: as in a container with a limit of processors.
        return Cap(cpus, memory_bytes, "cgroup", own, (), parent)
    if cpus != int(cpus):
        raise UsageProblem(
            f"--cpus {cpus:g} needs cgroup v2, which this machine doesn't let us use: give a whole number"
        )
    return Cap(cpus, memory_bytes, "affinity", own[: int(cpus)], own[int(cpus) :])


@contextlib.contextmanager
def kept_off(cap: Cap) -> Iterator[None]:
    """Whatever this thread starts meanwhile, threads and processes, stays off the servers' processors where it can."""
    if not cap.others:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cap.others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def allowed() -> tuple[int, ...]:
    """The processors that this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))


def memory(text: str) -> int:
    """``2g``, ``512m``, a number of bytes.

    Raises :class:`UsageProblem` for anything else, and for less than any server takes.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if match is None:
        raise UsageProblem(f"{text!r} is no amount of memory: write 2g or 512m")
    value = int(float(match[1]) * UNITS[match[2]])
    if value < LEAST_MEMORY:
        raise UsageProblem(f"{text!r} of memory is too little for any server: 16m is the least")
    return value


class Confinement:
    """One server's cap in force. Use as a context manager that outlives the server."""

    def __init__(self, cap: Cap, name: str) -> None:
        self._cap = cap
        self._group = (
            cap.parent / f"mcpace-{os.getpid()}-{re.sub('[^A-Za-z0-9.-]+', '-', name)}" if cap.parent else None
        )

    def prefix(self) -> tuple[str, ...]:
        """What to put before a command so that it is confined."""
        cores = "-" if self._group else ",".join(map(str, self._cap.cores))
        return (sys.executable, "-I", "-S", str(LIMIT_EXEC), cores, str(self._group or "-"))

    def __enter__(self) -> Confinement:
        if self._group is not None:
            self._group.mkdir()
            try:
                (self._group / "cpu.max").write_text(f"{round(self._cap.cpus * PERIOD_US)} {PERIOD_US}")
                if self._cap.memory_bytes is not None:
                    (self._group / "memory.max").write_text(str(self._cap.memory_bytes))
                    with contextlib.suppress(OSError):  # a kernel without swap has no such file
                        (self._group / "memory.swap.max").write_text("0")
            except BaseException:
                self._group.rmdir()
                raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._group is None:
            return
        with contextlib.suppress(OSError):
            (self._group / "cgroup.kill").write_text("1")
        # A group can be removed once the kernel has buried its last process, which takes a moment.
        deadline = time.monotonic() + REMOVE_LIMIT_S
        while time.monotonic() < deadline:
            try:
                self._group.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)
            else:
                return

    def killed_for_memory(self) -> bool:
        """Whether the kernel killed one of its processes for want of memory."""
        if self._group is None:
            return False
        try:
            text = (self._group / "memory.events").read_text()
        except OSError:
            return False
        return any(
            line.split()[0] == "oom_kill" and line.split()[1] != "0" for line in text.splitlines() if " " in line
        )


def _delegated(root: Path | None) -> Path | None:
    """The nearest group above us that hands down both controllers and lets us make groups and move into them."""
    root = root or _mounted()
    own = _own_group()
    if root is None or own is None:
        return None
    group = root / own.lstrip("/")
    while group != root:
        group = group.parent
        if _hands_down(group) and os.access(group, os.W_OK) and os.access(group / "cgroup.procs", os.W_OK):
            return group if _can_make(group) else None
    return None


def _hands_down(group: Path) -> bool:
    try:
        return {"cpu", "memory"} <= set((group / "cgroup.subtree_control").read_text().split())
    except OSError:
        return False


def _can_make(group: Path) -> bool:
    """Rights on files say little inside containers: only trying tells."""
    probe = group / f"mcpace-{os.getpid()}-probe"
    try:
        probe.mkdir()
    except OSError:
        return False
    with contextlib.suppress(OSError):
        probe.rmdir()
    return True


def _mounted() -> Path | None:
    """Where cgroup v2 is mounted: field 5 of the line, before the dash; its kind comes after (proc(5))."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            return Path(before.split()[4])
    return None


def _own_group() -> str | None:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
