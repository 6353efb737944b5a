"""Pieces that mcpace uses where this machine has them: which are present, what each adds, and what installs it.

Design constraint: Each check observes the machine itself (it runs the program, asks the kernel) and has a time limit.
No check needs a package outside of mcpace's own dependencies, or reads the current folder.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mcpace.lab.environments.toolchains import PROGRAMS, find_command
from mcpace.lab.errors import LabError
from mcpace.lab.paths import CACHE_VARIABLE, cache_folder, find_uv
from mcpace.lab.processes.child_processes import run_child
from mcpace.lab.processes.process_table import open_socket_diagnostics

VERSION_LIMIT_S = 10.0
ANSWER_LIMIT_S = 2.0
CACHE_LIMIT_S = 2.0
"""Seconds after which the size of the cache is no longer counted."""
FEW_DESCRIPTORS = 4096
SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
STATUS = Path("/proc/self/status")
CAP_SYS_PTRACE = 19
TCP_INFO_BYTES = 192
"""Bytes of ``struct tcp_info`` that hold the statistics that the recorder reads."""
EXTRAS = {
    "lab": (
        ("numpy", "packaging", "rich", "toktok", "websockets"),
        "measure, explain, check, clients, limits, servers, gate, compare, gateway, replicas, bisect, ui, demo and mcp",
    ),
    "otel": (
        ("opentelemetry.sdk", "prometheus_client"),
        "telemetry of servers; serve --metrics-port; load --prometheus and --otlp",
    ),
    "parquet": (("duckdb", "pyarrow"), "export --parquet; query"),
    "ray": (("ray",), "load --workers ray:N"),
    "reload": (("watchfiles",), "serve --reload"),
    "routes": (("starlette",), "custom routes and ASGI applications beside a server"),
    "django": (("django", "rest_framework"), "servers in a Django project"),
    "toon": (("toon_format",), "tool results in TOON"),
}
"""Modules of each extra, and what the extra adds."""
USES = {
    "npm": ("Node.js", "TypeScript SDKs in clients and servers; --inside for servers in Node.js"),
    "go": ("Go", "Go SDKs in clients and servers"),
    "cargo": ("Rust", "Rust SDKs in clients and servers"),
    "maven": ("Java, Maven", "the Java SDK in servers; --inside for servers in Java"),
    "redis": ("redis-server", "servers --workload shop; a store for serve --store"),
}
DEVELOPMENT = {
    "chromium": ("Chromium", "tests and pictures of the report's page"),
    "postgresql": ("PostgreSQL", "tests of Django with a database server"),
    "wrk": ("wrk", "make bench-serve, and wrk beside the load engine in make bench-load"),
    "k6": ("k6", "k6 beside the load engine in make bench-load"),
    "perf": ("perf", "profiles of mcpace's compiled part"),
}


@dataclass(frozen=True)
class Piece:
    """One piece, as found on this machine."""

    name: str
    present: bool
    found: str
    """Version, place or value; empty where nothing is known."""
    adds: str
    """The work that needs it, or is better with it."""
    install: str
    """The command that installs or permits it; empty for a piece that mcpace can't run without."""
    for_development: bool = False
    """Only work on mcpace itself needs it."""


def find_pieces() -> Iterator[Piece]:
    """Checks one piece after the other."""
    yield Piece("Python", True, f"{platform.python_version()} at {sys.executable}", "all of mcpace", "")
    for extra, (_, adds) in EXTRAS.items():
        missing = missing_modules(extra)
        found = f"without {', '.join(missing)}" if missing else ""
        yield Piece(f"mcpace[{extra}]", not missing, found, adds, f"pip install 'mcpace[{extra}]'")
    yield _uv()
    for name, (title, adds) in USES.items():
        yield _program(name, title, adds)
    yield from _kernel_pieces()
    yield _cache()
    for name, (title, adds) in DEVELOPMENT.items():
        yield _program(name, title, adds, for_development=True)


def missing_modules(extra: str) -> list[str]:
    """Modules of an extra that are not installed."""
    return [module for module in EXTRAS[extra][0] if not _has_module(module)]


def _has_module(name: str) -> bool:
    """Whether a module can be found. The current folder, from which ``python -m`` imports too, is not searched."""
    path, here = sys.path, os.path.realpath(os.curdir)
    sys.path = [place for place in path if os.path.realpath(place or os.curdir) != here]
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the parent of a dotted name
        return False
    finally:
        sys.path = path


def _uv() -> Piece:
    adds = "environments of Python SDK releases, in clients, servers and bisect"
    try:
        uv = str(find_uv())
    except LabError:
        return Piece("uv", False, "", adds, "pip install uv")
    return Piece("uv", True, f"{_version(uv, '--version')} at {uv}", adds, "pip install uv")


def _program(name: str, title: str, adds: str, *, for_development: bool = False) -> Piece:
    program = PROGRAMS[name]
    missing = program.missing()
    path = find_command(program.commands[0])
    if missing or path is None:
        found = f"without {', '.join(missing)}" if len(missing) < len(program.commands) else ""
        return Piece(title, False, found, adds, program.remedy, for_development)
    return Piece(title, True, f"{_version(path, *program.version)} at {path}", adds, program.remedy, for_development)


def _version(program: str, *words: str) -> str:
    """First version number that a program prints. The program runs in the root folder, which nobody else can fill."""
    done = run_child([program, *words], VERSION_LIMIT_S, cwd=Path(Path.cwd().anchor))
    match = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
    return match[0] if match else "an unknown version"


def _kernel_pieces() -> Iterator[Piece]:
    linux = sys.platform == "linux"
    checks: tuple[tuple[str, Callable[[], bool], str, str], ...] = (
        (
            "reading other processes",
            _may_trace,
            "measure, explain and load --pid",
            "sudo sysctl kernel.yama.ptrace_scope=0, or run mcpace as root",
        ),
        (
            "TCP_INFO",
            _has_tcp_info,
            "statistics of connections in recordings: lost packets, slow readers",
            "a Linux kernel that answers getsockopt(TCP_INFO); some sandboxes don't",
        ),
        (
            "socket diagnostics",
            _has_socket_diagnostics,
            "connections that a server's tools open, with --inside",
            "a Linux kernel with inet_diag: sudo modprobe inet_diag tcp_diag",
        ),
    )
    for name, check, adds, install in checks:
        present = linux and check()
        yield Piece(name, present, "permitted" if present else "" if linux else "Linux only", adds, install)
    yield _descriptors()


def _may_trace() -> bool:
    """Whether the kernel lets this process read processes that it did not start."""
    scope = SCOPE.read_text().strip() if SCOPE.exists() else "0"
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", STATUS.read_text(), re.M)
    capable = match is not None and bool(int(match[1], 16) >> CAP_SYS_PTRACE & 1)
    return scope == "0" or (capable and scope in ("1", "2"))


def _has_tcp_info() -> bool:
    if sys.platform != "linux":
        return False
    with (
        contextlib.suppress(OSError),
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), ANSWER_LIMIT_S) as connection,
    ):
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        return len(info) == TCP_INFO_BYTES and any(info)
    return False


def _has_socket_diagnostics() -> bool:
    """Whether a netlink query for listening sockets names one that listens."""
    if sys.platform != "linux":
        return False
    by_family, request_dump, listening = 20, 0x301, 1 << 10
    with (
        contextlib.suppress(OSError),
        socket.create_server(("127.0.0.1", 0)) as listener,
        open_socket_diagnostics() as netlink,
    ):
        port = struct.pack("!H", listener.getsockname()[1])
        query = struct.pack("=BBxxI48x", socket.AF_INET, socket.IPPROTO_TCP, listening)
        netlink.send(struct.pack("=IHHII", 16 + len(query), by_family, request_dump, 1, 0) + query)
        until = time.monotonic() + ANSWER_LIMIT_S
        while time.monotonic() < until:
            part = netlink.recv(32_768)
            for begin, kind in _netlink_messages(part):
                if kind != by_family:  # the end of the list, or an error
                    return False
                # struct inet_diag_msg: four bytes, then the port.
                if part[begin + 20 : begin + 22] == port:
                    return True
    return False


def _netlink_messages(part: bytes) -> Iterator[tuple[int, int]]:
    """Begin and type of each message."""
    begin = 0
    while begin + 16 <= len(part):
        length, kind = struct.unpack_from("=IH", part, begin)
        yield begin, kind
        begin += max(16, length + 3 & ~3)


def _descriptors() -> Piece:
    if sys.platform == "win32":
        return Piece("file descriptors", True, "no limit", "load with many users", "")
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # load raises the soft limit to the hard one.
    is_enough = hard == resource.RLIM_INFINITY or hard >= FEW_DESCRIPTORS
    adds = f"load with more than some {FEW_DESCRIPTORS:,} users"
    found = " of ".join("no limit" if one == resource.RLIM_INFINITY else f"{one:,}" for one in (soft, hard))
    return Piece("file descriptors", is_enough, found, adds, f"ulimit -Hn {16 * FEW_DESCRIPTORS}, as root")


def _cache() -> Piece:
    folder = cache_folder()
    adds = "environments and builds of releases that are made once"
    install = f"set {CACHE_VARIABLE} to a folder that you can write to"
    existing = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    size, is_whole = _folder_size(folder)
    found = f"{folder}, {'' if is_whole else 'more than '}{size / 1e6:,.0f} MB"
    return Piece("cache", existing.is_dir() and os.access(existing, os.W_OK), found, adds, install)


def _folder_size(folder: Path) -> tuple[int, bool]:
    """Bytes of the files in a folder, and whether all were counted within the limit. Links are not followed."""
    until, size, folders = time.monotonic() + CACHE_LIMIT_S, 0, [str(folder)]
    while folders:
        if time.monotonic() > until:
            return size, False
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    size += entry.stat(follow_symlinks=False).st_size
    return size, True
