"""Import times of a Python server, measured in a start of its own with ``-X importtime``.

Design constraint: the interpreter prints its import times to stderr, which the instrumented client doesn't keep. So the
server is started here, gets one ``initialize``, and is ended after its first answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from mcpace.lab.processes.child_processes import end_group
from mcpace.report.model.start import ImportTime

VARIABLE = "PYTHONPROFILEIMPORTTIME"
LINE = re.compile(rb"import time: +(\d+) \| +(\d+) \| ( *)(\S+)")
HEADER = b"import time: self [us] | cumulative | imported package"
FIRST = b"site"
"""The last module that the interpreter imports for itself."""
STANDARD_LIBRARY = "the standard library"
MOST_PACKAGES = 8
MOST_BYTES = 32 * 2**20
GRACE_S = 2.0
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "mcpace", "version": "0"}},
}


@dataclass
class ImportTimes:
    """Import times of one start."""

    interpreter_s: float = 0.0
    """Imports of the interpreter itself."""
    packages: list[ImportTime] = field(default_factory=list)
    """Times by package, longest first, without those of the packages that they import."""

    @property
    def imports_s(self) -> float:
        """Time of all imports of the program."""
        return sum(package.seconds for package in self.packages)


def measure_imports(
    command: Iterable[str], environment: Iterable[tuple[str, str]], limit_s: float
) -> ImportTimes | None:
    """Starts a server and returns its import times; ``None`` where no Python interpreter printed any."""
    try:
        child = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **dict(environment), VARIABLE: "1"},
            start_new_session=True,
        )
    except OSError:
        return None
    with child:
        try:
            return parse_import_times(_read_stderr(child, limit_s))
        finally:
            end_group(child, GRACE_S)


def _read_stderr(child: subprocess.Popen[bytes], limit_s: float) -> bytes:
    """Output on stderr until the first line on stdout, the end of stdout, or the limit. Empty on Windows, which cannot
    wait for several pipes at once."""
    if sys.platform == "win32":
        return b""
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    # A program that has ended has left its output.
    with contextlib.suppress(OSError):
        child.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
    until, read = time.monotonic() + limit_s, bytearray()
    with selectors.DefaultSelector() as selector:
        for stream in (child.stdout, child.stderr):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
        has_answered = False
        while not has_answered and (left := until - time.monotonic()) > 0 and len(read) < MOST_BYTES:
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, 65536)
                if key.fileobj is child.stderr:
                    read += chunk
                else:
                    has_answered = not chunk or chunk.lstrip().startswith(b"{")
                if not chunk:
                    selector.unregister(key.fileobj)
            if not selector.get_map():
                break
        while (chunk := _read_available(child.stderr.fileno())) and len(read) < MOST_BYTES:
            read += chunk
    return bytes(read)


def _read_available(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except BlockingIOError:
        return b""


def parse_import_times(output: bytes) -> ImportTimes | None:
    """Reads the import times of the process with the longest ones; ``None`` where there are none."""
    found = [times for part in output.split(HEADER)[1:] if (times := _parse_process(part)) is not None]
    return max(found, key=lambda times: times.imports_s, default=None)


def _parse_process(part: bytes) -> ImportTimes | None:
    lines = [(int(match[1]) / 1e6, match[4]) for match in LINE.finditer(part)]
    own = next((number for number, (_, name) in enumerate(lines) if name == FIRST), None)
    if own is None:
        return None
    packages: dict[str, float] = {}
    for seconds, name in lines[own + 1 :]:
        package = name.decode(errors="replace").partition(".")[0]
        package = STANDARD_LIBRARY if package in sys.stdlib_module_names else package
        packages[package] = packages.get(package, 0.0) + seconds
    longest = sorted(packages.items(), key=lambda one: -one[1])
    kept = [ImportTime(name=name, seconds=seconds) for name, seconds in longest[:MOST_PACKAGES]]
    if rest := sum(seconds for _, seconds in longest[MOST_PACKAGES:]):
        kept.append(ImportTime(name="others", seconds=rest))
    return ImportTimes(sum(seconds for seconds, _ in lines[: own + 1]), kept)
