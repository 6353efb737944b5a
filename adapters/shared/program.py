"""The process contract of Python server programs (adapters/README.md): options, the line on stdout, and the end.

The file runs on Python 3.10 and imports no SDK. Stdout is reserved for the contract; output of libraries goes to
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
"""Time for calls in flight at the end, after the load has ended."""


def options() -> argparse.Namespace:
    """The options of the command line. From here on, stdout is reserved for `say_ready`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--state", choices=["stateless", "stateful"], default="stateless")
    parser.add_argument("--site", help="a folder of further packages")
    chosen = parser.parse_args()
    # A descriptor, not a file object: a file would be closed well before a slow interpreter's end, and the reader would
    # take that for the end of the program.
    chosen.answers = os.dup(1)
    os.dup2(2, 1)
    return chosen


def unsupported(reason: str) -> NoReturn:
    """Ends the program, because this release doesn't support the request."""
    print(reason, file=sys.stderr)
    sys.exit(UNSUPPORTED)


def say_ready(chosen: argparse.Namespace, package: str, url: str, notes: tuple[str, ...] = ()) -> None:
    """Prints the line that tells that the server listens."""
    try:
        number = version(package)
    except PackageNotFoundError:
        number = "unknown"
    line = {"ready": True, "sdk": package, "version": number, "pid": os.getpid(), "url": url, "workers": 1}
    os.write(chosen.answers, json.dumps({**line, "notes": list(notes)}).encode() + b"\n")


def at_stdin_s_end(do: Callable[[], Any]) -> None:
    """Calls `do` when stdin ends, because the parent process has ended or has closed it."""

    def wait() -> None:
        # The lock of sys.stdin would delay the interpreter's end.
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        do()

    threading.Thread(target=wait, daemon=True).start()


def serve_asgi(chosen: argparse.Namespace, package: str, app: Any, path: str = "/mcp") -> None:
    """Serves with uvicorn, as the SDKs themselves do, until stdin ends or SIGTERM arrives."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets=sockets)
            if self.started:
                say_ready(chosen, package, f"http://{chosen.host}:{listener.getsockname()[1]}{path}")

        # uvicorn's own handlers raise the signal again at the end, which would determine the exit code.
        def capture_signals(self) -> Any:
            return contextlib.nullcontext()

        def install_signal_handlers(self) -> None:
            """Does nothing. Earlier releases of uvicorn call it."""

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
    """A listening socket that names its protocol, as those of the SDKs' own servers. asyncio sets TCP_NODELAY only on
    such sockets; without it, each small reply in two writes would wait for the client's kernel."""
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
