"""The histogram of a server's requests for Prometheus, with exemplars, at a port of its own.

An exemplar is the trace of a request's client; Prometheus asks for exemplars with the format OpenMetrics.

Design constraint: clients choose names of tools and methods, so the number of series is limited.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from opentelemetry import trace
from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector

from mcpace import _core
from mcpace.server.running.addresses import Address
from mcpace.server.telemetry.conventions import BUCKETS, LABELS, OPEN_CONNECTIONS, PROMETHEUS_LABELS, PROMETHEUS_NAME
from mcpace.server.telemetry.metrics_listener import listen

if TYPE_CHECKING:
    from opentelemetry.context import Context

UNLIMITED = LABELS[:4]
"""Labels with any number of values: names that clients choose, and codes of errors."""
MOST_SERIES = 1_000
OTHER = "other"
"""Value of the labels :data:`UNLIMITED` in the series beyond :data:`MOST_SERIES`."""
LONGEST_LABEL = 128


class PrometheusDurations:
    """Durations of requests by method, tool, prompt and error."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._histogram = Histogram(
            PROMETHEUS_NAME,
            "From when a request had been read until its reply was ready",
            PROMETHEUS_LABELS,
            buckets=BUCKETS,
            registry=self._registry,
        )
        connections = Gauge(OPEN_CONNECTIONS, "Open connections", ["side"], registry=self._registry)
        connections.labels("client").set_function(_core.open_connections)
        self._series: set[tuple[str, ...]] = set()
        self._listening: set[Address] = set()

    def listen(self, address: Address) -> None:
        """Answers requests of Prometheus on a thread until the process ends, once for each address.

        Raises :class:`OSError` where the port can't be used.
        """
        if address in self._listening:
            return
        listen(self._registry, address)
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
