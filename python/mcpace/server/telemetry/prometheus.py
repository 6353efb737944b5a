"""The histogram of a server's requests for Prometheus, with exemplars, at a port of its own.

Names and labels are those that OpenTelemetry's exporters for Prometheus make of the conventions for MCP, so that one
dashboard serves both. An exemplar is the trace of a request's client; Prometheus asks for exemplars with the format
OpenMetrics.

Design constraint: clients choose names of tools and methods, so the number of series is limited.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from opentelemetry import trace
from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, make_wsgi_app

from mcpace.server.running.addresses import Address
from mcpace.server.running.host_policy import policy_of
from mcpace.server.telemetry.spans import BUCKETS, DURATION

if TYPE_CHECKING:
    from opentelemetry.context import Context

NAME = f"{DURATION.replace('.', '_')}_seconds"
LABELS = ("mcp.method.name", "gen_ai.tool.name", "gen_ai.prompt.name", "error.type", "network.transport")
UNLIMITED = LABELS[:4]
"""Labels with any number of values: names that clients choose, and codes of errors."""
MOST_SERIES = 1_000
OTHER = "other"
"""Value of the labels :data:`UNLIMITED` in the series beyond :data:`MOST_SERIES`."""
LONGEST_LABEL = 128
READING_S = 10.0
"""How long a request may take to arrive."""


class PrometheusDurations:
    """Durations of requests by method, tool, prompt and error."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._histogram = Histogram(
            NAME,
            "From when a request had been read until its reply was ready",
            [label.replace(".", "_") for label in LABELS],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._series: set[tuple[str, ...]] = set()
        self._listening: set[Address] = set()

    def listen(self, address: Address) -> None:
        """Answers requests of Prometheus on a thread until the process ends, once for each address.

        On loopback, requests with a foreign ``Host`` or ``Origin`` are refused, as those of a web page whose name was
        rebound to this address. Raises :class:`OSError` where the port can't be used.
        """
        if address in self._listening:
            return
        server = _Server(address)
        server.set_app(_guarded_application(make_wsgi_app(self._registry), address))
        threading.Thread(target=server.serve_forever, name="mcpace-metrics", daemon=True).start()
        self._listening.add(address)

    def record(self, seconds: float, attributes: Mapping[str, str], within: Context) -> None:
        """Counts a request. ``within`` is the context of its span."""
        values = tuple(attributes.get(label, "")[:LONGEST_LABEL] for label in LABELS)
        if values not in self._series:
            if len(self._series) >= MOST_SERIES:
                values = tuple(
                    OTHER if label in UNLIMITED and value else value
                    for label, value in zip(LABELS, values, strict=True)
                )
            else:
                self._series.add(values)
        found = trace.get_current_span(within).get_span_context()
        exemplar = None
        if found.is_valid:
            exemplar = {
                "trace_id": trace.format_trace_id(found.trace_id),
                "span_id": trace.format_span_id(found.span_id),
            }
        self._histogram.labels(*values).observe(seconds, exemplar)


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
