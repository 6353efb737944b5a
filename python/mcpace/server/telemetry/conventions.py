"""Names and labels of the histogram of requests, by OpenTelemetry's conventions for MCP (docs/gen-ai/mcp.md).

Names for Prometheus are those that OpenTelemetry's exporters make of the conventions, so that one dashboard serves
servers, their exporters, and the recorder. Needs no package, because the recorder has no spans.
"""

from __future__ import annotations

DURATION = "mcp.server.operation.duration"
# Bounds of the conventions, and finer ones below their first, since calls take microseconds.
BUCKETS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
LABELS = ("mcp.method.name", "gen_ai.tool.name", "gen_ai.prompt.name", "error.type", "network.transport")

PROMETHEUS_NAME = f"{DURATION.replace('.', '_')}_seconds"
PROMETHEUS_LABELS = tuple(label.replace(".", "_") for label in LABELS)
OPEN_CONNECTIONS = "mcpace_open_connections"
"""Gauge of open connections, by the ``side`` of the other end: ``client`` or ``server``. No convention names it."""
