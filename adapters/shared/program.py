"""A Python server program's edges (adapters/README.md): its options, its one line on stdout, and its end.

Runs on Python 3.10, and imports nothing of any SDK. Stdout is the contract's alone: whatever a library prints goes to
stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

UNSUPPORTED = 127
GRACE_S = 2
"""For calls in flight at the end; load has ended by then."""


def options() -> argparse.Namespace:
    """What the program was started with; stdout is kept for `say_ready` from here on."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--state", choices=["stateless", "stateful"], default="stateless")
    parser.add_argument("--site", help="a folder of further packages")
    chosen = parser.parse_args()
    # A number and no file: that would be closed well before a slow interpreter's end, and look like something else.
    chosen.answers = os.dup(1)
    os.dup2(2, 1)
    return chosen


def unsupported(reason: str) -> NoReturn:
    """This version can't do that."""
    print(reason, file=sys.stderr)
    sys.exit(UNSUPPORTED)


def say_ready(chosen: argparse.Namespace, package: str, url: str, notes: tuple[str, ...] = ()) -> None:
    """Once it listens."""
    try:
        number = version(package)
    except PackageNotFoundError:
        number = "unknown"
    line = {"ready": True, "sdk": package, "version": number, "pid": os.getpid(), "url": url, "workers": 1}
    os.write(chosen.answers, json.dumps({**line, "notes": list(notes)}).encode() + b"\n")


def at_stdin_s_end(do: Callable[[], Any]) -> None:
    """Whoever started us is gone, or wants no more."""

    def wait() -> None:
        # Not through sys.stdin: its lock would hold up the interpreter's end.
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        do()

    threading.Thread(target=wait, daemon=True).start()


def serve_asgi(chosen: argparse.Namespace, package: str, app: Any, path: str = "/mcp") -> None:
    """Serves by uvicorn, as the SDKs themselves do, until stdin ends or SIGTERM."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets=sockets)
            if self.started:
                say_ready(chosen, package, f"http://{chosen.host}:{listener.getsockname()[1]}{path}")

        # uvicorn's own handlers send themselves the signal again at the end, which would be the exit code.
        def capture_signals(self) -> Any:
            return contextlib.nullcontext()

        def install_signal_handlers(self) -> None:
            """Of earlier uvicorns."""

    try:
        listener = listening(chosen.host, chosen.port)
    except OSError as error:
        print(f"{chosen.host}:{chosen.port} can't be listened on: {error.strerror}", file=sys.stderr)
        sys.exit(1)
    config = uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=GRACE_S)
    server = Server(config)

    def end(*_: Any) -> None:
        server.should_exit = True

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    at_stdin_s_end(end)
    server.run(sockets=[listener])
    sys.exit(0 if server.started else 1)


def listening(host: str, port: int) -> socket.socket:
    """A socket as the SDKs' own servers get theirs, which names its protocol: asyncio sets TCP_NODELAY on no other, and
    each small reply in two writes would then wait for the client's kernel."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener
