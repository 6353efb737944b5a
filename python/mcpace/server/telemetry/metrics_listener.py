"""Answers Prometheus at a port of its own, on a thread, with the text of a registry of metrics.

On loopback, requests with a foreign ``Host`` or ``Origin`` are refused, as those of a web page whose name was rebound
to this address. The format is the one that the ``Accept`` header asks for: OpenMetrics, or Prometheus' own.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from mcpace.server.running.addresses import Address
from mcpace.server.running.host_policy import policy_of

READING_S = 10.0
"""How long a request may take to arrive."""


def listen(registry: CollectorRegistry, address: Address) -> Address:
    """Answers requests until the process ends. Returns the address with the port that a port of 0 stands for.

    Raises :class:`OSError` where the port can't be used.
    """
    server = _Server(address)
    server.set_app(_guarded_application(make_wsgi_app(registry), address))
    threading.Thread(target=server.serve_forever, name="mcpace-metrics", daemon=True).start()
    return Address(address.host, server.server_port)


class _Server(ThreadingMixIn, WSGIServer):
    """A server with a thread for each request."""

    daemon_threads = True

    def __init__(self, address: Address) -> None:
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        super().__init__((address.host, address.port), _Handler)

    def handle_error(self, *_: object) -> None:
        """Ignores a client that leaves or sends nothing, where the base class prints a traceback."""


class _Handler(WSGIRequestHandler):
    timeout = READING_S

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


def _guarded_application(application: Callable[..., Iterable[bytes]], address: Address) -> Callable[..., Any]:
    """An application of WSGI that refuses foreign ``Host`` and ``Origin`` headers where the address is loopback."""
    policy = policy_of(None, address.host)

    def answer(environ: Mapping[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        names = {b"host": "HTTP_HOST", b"origin": "HTTP_ORIGIN"}
        headers = [(name, str(environ[key]).encode("latin-1")) for name, key in names.items() if key in environ]
        refusal = policy.refusal(headers) if policy is not None else None
        if refusal is None:
            return application(environ, start_response)
        status, text = refusal
        start_response(f"{status} {text}", [("Content-Type", "text/plain")])
        return [text.encode()]

    return answer
