"""``mcpace load-worker``: serves one driver, over stdin and stdout or over TCP (``--listen``).

Over TCP, the worker serves the first driver that knows the token, closes its port to others, and ends with that driver.

Design constraint: standard library only, as :mod:`.protocol` says. A worker listens only where there is a token, since
a plan may start programs.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Sequence

from mcpace.lab.load.workers.handshake import (
    DEFAULT_PORT,
    HANDSHAKE_LIMIT_S,
    HandshakeFailure,
    prove_as_worker,
    read_worker_token,
)
from mcpace.lab.load.workers.worker import WAIT_LIMIT_S, run_worker, serve_driver

DONE, USAGE, UNREACHABLE = 0, 2, 3
LOOPBACK = "127.0.0.1"


def run_worker_command(words: Sequence[str]) -> int:
    """Runs the command with its arguments. Returns the exit code."""
    if not words:
        run_worker()
        return DONE
    if len(words) != 2 or words[0] != "--listen":
        return _fail("load-worker takes --listen [HOST:]PORT, or no arguments", USAGE)
    host, _, port = words[1].rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65_535:
        return _fail(f"--listen {words[1]!r}: write [HOST:]PORT, as in {LOOPBACK}:{DEFAULT_PORT}", USAGE)
    try:
        return _serve_address(host.strip("[]") or LOOPBACK, int(port), read_worker_token())
    except ValueError as error:
        return _fail(str(error), USAGE)
    except OSError as error:
        return _fail(f"--listen {words[1]!r}: {getattr(error, 'strerror', None) or error}", UNREACHABLE)


def _serve_address(host: str, port: int, token: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        print(f"mcpace: waits for its driver on {host} port {listener.getsockname()[1]}", file=sys.stderr, flush=True)
        connection = _accept_driver(listener, token)
    if connection is None:
        return _fail(f"no driver with the token came within {WAIT_LIMIT_S:.0f} s", UNREACHABLE)
    with connection, connection.makefile("rb") as source, connection.makefile("wb") as out:
        serve_driver(source, out)
    return DONE


def _accept_driver(listener: socket.socket, token: str) -> socket.socket | None:
    """The first connection of a driver that knows the token; ``None`` where none comes in time."""
    deadline = time.monotonic() + WAIT_LIMIT_S
    while (left_s := deadline - time.monotonic()) > 0:
        listener.settimeout(left_s)
        try:
            connection, (address, *_) = listener.accept()
        except TimeoutError:
            break
        try:
            connection.settimeout(HANDSHAKE_LIMIT_S)
            prove_as_worker(connection, token)
        except (HandshakeFailure, OSError):
            connection.close()
            print(f"mcpace: refused a connection from {address}", file=sys.stderr, flush=True)
            continue
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    return None


def _fail(reason: str, code: int) -> int:
    print(f"mcpace: {reason}", file=sys.stderr)
    return code
