"""Limits on the processors and the memory of each server under test.

Where cgroup v2 permits, each server gets its own control group with a share of processor time (``cpu.max``) and a limit
of memory (``memory.max``) without swap. Elsewhere, the server is bound to a number of processors (affinity), and its
memory is not limited. A comparison reports the method.

A group can be created only below a group that delegates its controllers (``cgroup.subtree_control``) and that this
process may move processes into. Moving requires write access to the nearest common ancestor: root on the machine itself
has it, or the user of a systemd session with delegation. Most containers give it to no user.
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

from mcpace.lab.errors import EnvironmentProblem, UsageProblem
from mcpace.system.processors import bind_thread, usable_cores

LIMIT_EXEC = Path(__file__).with_name("limit_exec.py")
PERIOD_US = 100_000
"""Period of a processor quota, in microseconds: the kernel's default."""
LEAST_MEMORY = 16 * 1024 * 1024
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
REMOVE_LIMIT_S = 2.0

By = Literal["cgroup", "affinity"]


@dataclass(frozen=True)
class Cap:
    """Limits of every server, and the method that enforces them."""

    cpus: float
    memory_bytes: int | None
    """Requested limit of memory; enforced with ``cgroup`` only."""
    by: By
    cores: tuple[int, ...]
    """Processors that servers may use."""
    others: tuple[int, ...]
    """Processors left for the load and the servers' backends; empty where servers may use all processors."""
    parent: Path | None = field(default=None, repr=False)
    """Group in which the servers' groups are created."""

    @property
    def limits_memory(self) -> bool:
        """Whether the limit of memory is enforced."""
        return self.by == "cgroup" and self.memory_bytes is not None


def choose_cap(cpus: float, memory_bytes: int | None, *, root: Path | None = None) -> Cap:
    """Selects the method that enforces the limits on this machine. ``root``: mount point of cgroup v2, else searched.

    Raises :class:`UsageProblem` for more processors than this process may use, and for a fraction of a processor where
    only whole processors can be assigned.
    """
    if sys.platform != "linux":
        raise EnvironmentProblem(
            f"servers can be compared on Linux only, and this is {sys.platform}: the limits of processors and memory "
            "are control groups or affinity"
        )
    own = usable_cores()
    if cpus > len(own):
        raise UsageProblem(f"--cpus {cpus:g} is more than the {len(own)} that this machine lets us use")
    parent = _delegated_group(root)
    if parent is not None:
        # The quota counts processor time on any processor, as in a container with a limit of processors.
        return Cap(cpus, memory_bytes, "cgroup", own, (), parent)
    if cpus != int(cpus):
        raise UsageProblem(
            f"--cpus {cpus:g} needs cgroup v2, which this machine doesn't let us use: give a whole number"
        )
    return Cap(cpus, memory_bytes, "affinity", own[: int(cpus)], own[int(cpus) :])


@contextlib.contextmanager
def avoid_server_cores(cap: Cap) -> Iterator[None]:
    """Keeps threads and processes that this thread starts off the servers' processors, where others are left."""
    if not cap.others:
        yield
        return
    before = usable_cores()
    bind_thread(cap.others)
    try:
        yield
    finally:
        bind_thread(before)


def parse_memory(text: str) -> int:
    """Parses an amount of memory: ``2g``, ``512m``, a number of bytes.

    Raises :class:`UsageProblem` for other text, and for too little memory for any server.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if match is None:
        raise UsageProblem(f"{text!r} is no amount of memory: write 2g or 512m")
    value = int(float(match[1]) * UNITS[match[2]])
    if value < LEAST_MEMORY:
        raise UsageProblem(f"{text!r} of memory is too little for any server: 16m is the least")
    return value


class Confinement:
    """Enforced limits of one server. Use as a context manager that outlives the server."""

    def __init__(self, cap: Cap, name: str) -> None:
        self._cap = cap
        self._group = (
            cap.parent / f"mcpace-{os.getpid()}-{re.sub('[^A-Za-z0-9.-]+', '-', name)}" if cap.parent else None
        )

    def command_prefix(self) -> tuple[str, ...]:
        """Words to put before a command to apply the limits to it."""
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
        # A group can be removed only after the kernel has removed its last process, which takes a moment.
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
        """Whether the kernel killed a process of the group because of its memory limit."""
        if self._group is None:
            return False
        try:
            text = (self._group / "memory.events").read_text()
        except OSError:
            return False
        return any(
            line.split()[0] == "oom_kill" and line.split()[1] != "0" for line in text.splitlines() if " " in line
        )


def _delegated_group(root: Path | None) -> Path | None:
    """Nearest ancestor group that delegates both controllers and permits creating groups and moving processes."""
    root = root or _cgroup_root()
    own = _own_group()
    if root is None or own is None:
        return None
    group = root / own.lstrip("/")
    while group != root:
        group = group.parent
        if _hands_down(group) and os.access(group, os.W_OK) and os.access(group / "cgroup.procs", os.W_OK):
            return group if _can_create_group(group) else None
    return None


def _hands_down(group: Path) -> bool:
    try:
        return {"cpu", "memory"} <= set((group / "cgroup.subtree_control").read_text().split())
    except OSError:
        return False


def _can_create_group(group: Path) -> bool:
    """Tries to create a group. Inside containers, file permissions don't predict the result."""
    probe = group / f"mcpace-{os.getpid()}-probe"
    try:
        probe.mkdir()
    except OSError:
        return False
    with contextlib.suppress(OSError):
        probe.rmdir()
    return True


def _cgroup_root() -> Path | None:
    """Mount point of cgroup v2. It is field 5 of its line, before the dash; the file system type follows (proc(5))."""
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
