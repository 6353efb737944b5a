"""Facts about a running process from /proc that decide how it can be sampled. See proc_pid_status(5)."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
from pathlib import Path

from mcpace.lab.errors import UsageProblem
from mcpace.lab.inside.runtimes import Runtime
from mcpace.lab.processes.process_usage import program_name

PROC = Path("/proc")
RUNNING = {
    Runtime.PYTHON: re.compile(r"python.*"),
    Runtime.NODE: re.compile(r"node(?:js)?[-\d.v]*"),
    Runtime.JAVA: re.compile(r"java"),
}
"""Names of the files that processes of a runtime run."""
DELETED = " (deleted)"
"""End of the link to a program whose file was replaced since."""


def process_runtime(pid: int) -> Runtime | None:
    """The runtime of a process; ``None`` for other programs."""
    name = program_name(pid).removesuffix(DELETED)
    return next((runtime for runtime, names in RUNNING.items() if names.fullmatch(name)), None)


def program_path(pid: int) -> Path | None:
    """The file that a process runs; ``None`` where it can't be read."""
    try:
        return Path(str((PROC / str(pid) / "exe").readlink()).removesuffix(DELETED))
    except OSError:
        return None


def command_words(pid: int) -> list[str]:
    """The command line of a process; empty where it can't be read."""
    return _strings(pid, "cmdline")


def environment_value(pid: int, name: str) -> str | None:
    """The value with which a process was started; ``None`` where there is none, or where it can't be read."""
    prefix = f"{name}="
    values = (text.removeprefix(prefix) for text in _strings(pid, "environ") if text.startswith(prefix))
    return next(values, None)


def handles_signal(pid: int, name: str) -> bool:
    """Whether the process has a handler for a signal, such as ``SIGUSR1``."""
    number = signal.Signals[name]
    try:
        status = (PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def shares_namespace(pid: int, kind: str) -> bool:
    """Whether a process is in the namespace of this process: ``net`` or ``mnt``."""
    try:
        return (PROC / str(pid) / "ns" / kind).readlink() == (PROC / "self" / "ns" / kind).readlink()
    except OSError:
        return False


def open_process(pid: int) -> int:
    """A descriptor of the process that has this number now. Raises :class:`UsageProblem` where there is none."""
    if sys.platform != "linux":
        raise NotImplementedError
    try:
        return os.pidfd_open(pid)
    except OSError:
        raise UsageProblem(f"--pid: there is no process {pid}") from None


def send_signal(descriptor: int, name: str) -> None:
    """Sends a signal to the process of a descriptor."""
    if sys.platform != "linux":
        raise NotImplementedError
    signal.pidfd_send_signal(descriptor, signal.Signals[name])


def has_ended(descriptor: int) -> bool:
    """Whether the process of a descriptor has ended."""
    return bool(select.select([descriptor], [], [], 0)[0])


def _strings(pid: int, file: str) -> list[str]:
    try:
        return (PROC / str(pid) / file).read_bytes().decode("utf-8", "replace").split("\0")[:-1]
    except OSError:
        return []
