"""Server processes, which are ended with all their children."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

START_LIMIT_S = 60
END_LIMIT_S = 10


@contextmanager
def running(
    command: Sequence[str | Path], environment: Mapping[str, str], folder: Path, says: str | None, port: int = 0
) -> Iterator[int]:
    """Runs a server and yields its port once it is reachable: ``port``, or the one that ``says`` finds in its
    stderr."""
    process = subprocess.Popen(
        [*map(str, command)],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if says is None else subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield _reached(process, port) if says is None else _said(process, says)
    finally:
        _end(process)


def free_port() -> int:
    """A free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _reached(process: subprocess.Popen[bytes], port: int) -> int:
    limit = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return port
    raise RuntimeError(f"{process.args!r} could not be reached")


def _said(process: subprocess.Popen[bytes], pattern: str) -> int:
    assert process.stderr is not None
    limit, heard = time.monotonic() + START_LIMIT_S, b""
    while (left := limit - time.monotonic()) > 0:
        if not select.select([process.stderr], [], [], left)[0]:
            break
        piece = os.read(process.stderr.fileno(), 65_536)
        heard += piece
        if found := re.search(pattern, heard.decode("utf-8", "replace")):
            return int(found[1])
        if not piece:
            break
    raise RuntimeError(f"{process.args!r} did not start: {heard.decode('utf-8', 'replace').strip()[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, sign)
        try:
            process.wait(END_LIMIT_S)
            break
        except subprocess.TimeoutExpired:
            continue
    if process.stderr is not None:
        process.stderr.close()
