"""Writes the figures of a load in Prometheus' text format, for the node exporter's textfile collector or a
pushgateway."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mcpace.report.metrics.figures import Distribution, Value, distributions, values
from mcpace.report.model.run import Run


def write(run: Run, path: Path) -> None:
    """Writes the metrics of a run to a file, atomically.

    Raises :class:`OSError` where the file can't be written.
    """
    registry = CollectorRegistry()
    registry.register(_Figures(run))
    write_to_textfile(str(path), registry)


class _Figures(Collector):
    """A collector of the figures of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def collect(self) -> Iterable[Metric]:
        """All metric families of the run."""
        families: dict[str, Metric] = {}
        for value in values(self._run):
            family = families.setdefault(value.name, _family(value))
            assert isinstance(family, CounterMetricFamily | GaugeMetricFamily)
            _add_value(family, value)
        for told in distributions(self._run):
            labels = list(told.labels)
            histogram = families.setdefault(told.name, HistogramMetricFamily(told.name, told.help, labels=labels))
            assert isinstance(histogram, HistogramMetricFamily)
            histogram.add_metric(list(told.labels.values()), buckets=_cumulative_counts(told), sum_value=told.sum)
        return families.values()


def _family(value: Value) -> Metric:
    kind = CounterMetricFamily if value.kind == "counter" else GaugeMetricFamily
    return kind(value.name, value.help, labels=list(value.labels))


def _add_value(family: CounterMetricFamily | GaugeMetricFamily, value: Value) -> None:
    family.add_metric(list(value.labels.values()), value.value)


def _cumulative_counts(told: Distribution) -> list[tuple[str, float]]:
    """The cumulative counts of a histogram, which Prometheus' format requires."""
    below, buckets = 0, []
    for bound, count in zip(told.bounds, told.counts, strict=False):
        below += count
        buckets.append((repr(bound), float(below)))
    return [*buckets, ("+Inf", float(told.count))]
