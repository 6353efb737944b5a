"""Sends the figures of a load to an OpenTelemetry collector, over OTLP/HTTP.

The SDK's exporter gets finished data points. Recording a million samples one by one would count them a second time
after the engine, and would lose the engine's buckets.
"""

from __future__ import annotations

import time

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from mcpace.report.metrics.figures import Distribution, Value, distributions, values
from mcpace.report.model.run import Run

LIMIT_S = 10.0
LIMIT_MS = LIMIT_S * 1e3


def send(run: Run, url: str) -> bool:
    """Sends all metrics of a run. Returns whether the collector accepted them."""
    exporter = OTLPMetricExporter(endpoint=url, timeout=LIMIT_S)
    try:
        return exporter.export(data(run), timeout_millis=LIMIT_MS) is MetricExportResult.SUCCESS
    finally:
        exporter.shutdown()


def data(run: Run) -> MetricsData:
    """All metrics of a run, each with all its points."""
    now = time.time_ns()
    elapsed_s = max((case.load.elapsed_s for case in run.cases if case.load), default=0.0)
    start = now - int(elapsed_s * 1e9)
    numbers: dict[str, list[Value]] = {}
    for value in values(run):
        numbers.setdefault(value.name, []).append(value)
    told: dict[str, list[Distribution]] = {}
    for distribution in distributions(run):
        told.setdefault(distribution.name, []).append(distribution)
    metrics = [_number_metric(group, start, now) for group in numbers.values()]
    metrics += [_histogram_metric(group, start, now) for group in told.values()]
    scope = InstrumentationScope("mcpace", run.mcpace)
    resource = Resource.create({"service.name": "mcpace-load", "service.version": run.mcpace})
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, metrics, "")], "")])


def _number_metric(group: list[Value], start: int, now: int) -> Metric:
    first = group[0]
    points = [NumberDataPoint(one.labels, start, now, one.value) for one in group]
    counter = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return Metric(first.name, first.help, first.unit, counter if first.kind == "counter" else Gauge(points))


def _histogram_metric(group: list[Distribution], start: int, now: int) -> Metric:
    points = [
        HistogramDataPoint(one.labels, start, now, one.count, one.sum, one.counts, one.bounds, one.min, one.max)
        for one in group
    ]
    return Metric(group[0].name, group[0].help, "s", Histogram(points, AggregationTemporality.CUMULATIVE))
