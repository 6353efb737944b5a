"""The processes of this user: parent, age, memory, command, and the state of the standard input.

This module is the only part of ``mcpace processes`` that depends on the operating system. It reads /proc, and asks the
kernel about Unix sockets by sock_diag(7).
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.processes.process_usage import PAGE, PROC, TICKS
from mcpace.system.files import is_own

InputState = Literal["connected", "closed", "other"]
"""``closed``: a pipe or a Unix socket whose other end no process holds. ``other``: no pipe, no socket, or unknown."""

MOST_COMMAND_BYTES = 64 * 1024
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST = 4, 20, 1
UDIAG_SHOW_PEER, UNIX_DIAG_SHUTDOWN, RECEIVE_SHUTDOWN = 4, 6, 1
ANY_STATE = ANY_COOKIE = 0xFFFFFFFF
ANSWER_LIMIT_S = 2.0


@dataclass(frozen=True)
class ProcessEntry:
    """One process at one moment."""

    pid: int
    parent: int
    started_ticks: int
    """Start, in the kernel's ticks since boot: a later process with the same id has another one."""
    age_s: float
    memory_bytes: int
    name: str
    """Name that the kernel keeps, of at most 15 characters."""
    command: tuple[str, ...]
    """Empty for a process that has ended."""
    has_ended: bool


def read_process_table(proc: Path = PROC) -> dict[int, ProcessEntry]:
    """All processes of this user by process id.

    Raises :class:`EnvironmentProblem` where the system has no /proc.
    """
    try:
        uptime_s = float((proc / "uptime").read_text().split()[0])
        names = [entry.name for entry in proc.iterdir() if entry.name.isdecimal()]
    except (OSError, ValueError, IndexError) as error:
        raise EnvironmentProblem(
            f"mcpace processes needs {proc}, which this system ({sys.platform}) does not have or hides: it works on "
            "Linux"
        ) from error
    found = (_read_entry(proc / name, uptime_s) for name in names)
    return {entry.pid: entry for entry in found if entry is not None}


def is_same_process(entry: ProcessEntry, proc: Path = PROC) -> bool:
    """Whether the process of ``entry`` still has its process id."""
    now = _read_entry(proc / str(entry.pid), 0.0)
    return now is not None and now.started_ticks == entry.started_ticks


def input_state(pid: int, proc: Path = PROC) -> InputState:
    """State of the standard input of a process."""
    place = proc / str(pid) / "fd" / "0"
    try:
        status = place.stat()
        if stat.S_ISFIFO(status.st_mode):
            return _pipe_state(place)
        if stat.S_ISSOCK(status.st_mode):
            return _unix_socket_state(status.st_ino)
    except OSError:
        pass
    return "other"


def input_identity(pid: int, proc: Path = PROC) -> tuple[int, int]:
    """Device and inode of the standard input of a process, which processes that share it have in common."""
    try:
        status = (proc / str(pid) / "fd" / "0").stat()
    except OSError:
        return 0, pid
    return status.st_dev, status.st_ino


def is_pipe_or_socket(pid: int, descriptor: int, proc: Path = PROC) -> bool:
    """Whether a descriptor of a process is a pipe or a socket."""
    try:
        mode = (proc / str(pid) / "fd" / str(descriptor)).stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _read_entry(folder: Path, uptime_s: float) -> ProcessEntry | None:
    try:
        if not is_own(folder.stat(), 0):
            return None
        text = (folder / "stat").read_text(errors="replace")
        with (folder / "cmdline").open("rb") as file:
            command = file.read(MOST_COMMAND_BYTES)
    except OSError:
        return None  # it has ended meanwhile
    # proc_pid_stat(5). The second field is a name in parentheses, which may have any character in it.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    if len(fields) < 22:
        return None
    words = command.decode(errors="replace").rstrip("\0").split("\0") if command.strip(b"\0") else []
    started = int(fields[19])
    return ProcessEntry(
        pid=int(folder.name),
        parent=int(fields[1]),
        started_ticks=started,
        age_s=max(uptime_s - started / TICKS, 0.0),
        memory_bytes=max(int(fields[21]), 0) * PAGE,
        name=head.partition("(")[2],
        command=tuple(words),
        has_ended=fields[0] in "ZX",
    )


def _pipe_state(place: Path) -> InputState:
    if sys.platform == "win32":
        return "other"
    # The descriptor is a further reader of the pipe for a moment, and reads nothing.
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        poll = select.poll()
        poll.register(descriptor, 0)
        hung_up = any(event & select.POLLHUP for _, event in poll.poll(0))
    finally:
        os.close(descriptor)
    return "closed" if hung_up else "connected"


def _unix_socket_state(inode: int) -> InputState:
    """Asks the kernel whether the other end of a Unix socket was closed."""
    if sys.platform != "linux":
        return "other"
    body = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, ANY_STATE, inode, UDIAG_SHOW_PEER, ANY_COOKIE, ANY_COOKIE)
    header = struct.pack("=IHHII", 16 + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0)
    with contextlib.suppress(OSError), open_socket_diagnostics() as link:
        link.send(header + body)
        return _parse_answer(link.recv(4096), inode)
    return "other"


def open_socket_diagnostics() -> socket.socket:
    """Opens a socket by which the kernel answers questions about sockets, with a limit of time for each answer."""
    # A Python that was built for musl may lack the name.
    family = getattr(socket, "AF_NETLINK", 16)
    link = socket.socket(family, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
    link.settimeout(ANSWER_LIMIT_S)
    return link


def _parse_answer(answer: bytes, inode: int) -> InputState:
    """The answer is a header (16 bytes), a unix_diag_msg (16 bytes) and attributes of length, type and value."""
    if len(answer) < 32 or struct.unpack_from("=IH", answer)[1] != SOCK_DIAG_BY_FAMILY:
        return "other"  # an error: no socket of the family AF_UNIX
    if struct.unpack_from("=I", answer, 20)[0] != inode:
        return "other"
    at = 32
    while at + 4 <= len(answer):
        length, kind = struct.unpack_from("=HH", answer, at)
        if kind == UNIX_DIAG_SHUTDOWN and at + 4 < len(answer):
            return "closed" if answer[at + 4] & RECEIVE_SHUTDOWN else "connected"
        if length < 4:
            break
        at += (length + 3) & ~3
    return "other"
