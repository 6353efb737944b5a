"""The histogram of a server's requests for Prometheus, with exemplars, at a port of its own.

Names and labels are those that OpenTelemetry's exporters for Prometheus make of the conventions for MCP, so that one
dashboard serves both. An exemplar is the trace of a request's client; Prometheus asks for exemplars with the format
OpenMetrics.

Design constraint: clients choose names of tools and methods, so the number of series is limited.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from opentelemetry import trace
from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, start_http_server

from mcpace.server.telemetry.spans import BUCKETS, DURATION

if TYPE_CHECKING:
    from opentelemetry.context import Context

NAME = f"{DURATION.replace('.', '_')}_seconds"
LABELS = ("mcp.method.name", "gen_ai.tool.name", "gen_ai.prompt.name", "error.type", "network.transport")
CLIENT_CHOSEN = LABELS[:3]
MOST_SERIES = 1_000
OTHER = "other"
"""Value of the labels that clients choose, in the series beyond :data:`MOST_SERIES`."""
LONGEST_LABEL = 128


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

    def listen(self, host: str, port: int) -> None:
        """Answers requests of Prometheus on a thread. Raises :class:`OSError` where the port can't be used."""
        start_http_server(port, host, self._registry)

    def record(self, seconds: float, attributes: Mapping[str, str], within: Context) -> None:
        """Counts a request. ``within`` is the context of its span."""
        values = tuple(attributes.get(label, "")[:LONGEST_LABEL] for label in LABELS)
        if values not in self._series:
            if len(self._series) >= MOST_SERIES:
                values = tuple(
                    OTHER if label in CLIENT_CHOSEN and value else value
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
