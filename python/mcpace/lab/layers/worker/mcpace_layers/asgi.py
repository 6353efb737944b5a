"""Serves an ASGI application on a free port of loopback, with the uvicorn of the server's own environment."""

from __future__ import annotations

import importlib
import importlib.util
import socket
from typing import Any

from mcpace_layers.probe import Served
from mcpace_layers.problem import SETUP, Problem


def serve(application: Any, path: str, *, lifespan: str = "auto") -> Served:
    """Serves with uvicorn's defaults, including its choice of loop and parser, but without the access log."""
    try:
        uvicorn = importlib.import_module("uvicorn")
    except ModuleNotFoundError:
        raise Problem(SETUP, "serving needs uvicorn, which this environment has not: pip install uvicorn") from None
    # IPPROTO_TCP is explicit, as in uvicorn's own sockets: asyncio sets TCP_NODELAY only then.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_level="warning", access_log=False, lifespan=lifespan)
    server = uvicorn.Server(config)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}{path}"
    # From here on the socket listens: earlier connections wait in the kernel's queue for uvicorn.
    listener.listen(128)
    loaded = [name for name in ("uvloop", "httptools") if _is_installed(name)]
    by = f"uvicorn {uvicorn.__version__}{' with ' + ' and '.join(loaded) if loaded else ''}"
    return Served(url, by, lambda: server.run(sockets=[listener]))


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:
        return False
