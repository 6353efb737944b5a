"""``mcpace record --metrics``: counts of the recorded traffic for Prometheus, at a port of their own.

The compiled recorder counts; a scrape reads its counts and writes them with the library that servers use, under the
names of servers where both have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from mcpace import _core
from mcpace.cli.atomic_write import is_other
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.server.running.addresses import Address
from mcpace.server.running.errors import SetupProblem
from mcpace.server.telemetry import metrics_listener
from mcpace.server.telemetry.conventions import BUCKETS, OPEN_CONNECTIONS, PROMETHEUS_LABELS, PROMETHEUS_NAME

LOOPBACK = "127.0.0.1"
BOUNDS = tuple(floatToGoString(bound) for bound in (*BUCKETS, float("inf")))  # type: ignore[no-untyped-call]
PREFIX = "mcpace_recorder_"


class RecorderMetrics:
    """The port of the metrics. Answers with those of the process until it gets a recorder."""

    DURATION_BOUNDS = BUCKETS

    def __init__(self, place: str) -> None:
        """``place`` is ``HOST:PORT`` or a port on loopback.

        Raises :class:`UsageProblem` where it is neither, and :class:`LabError` where the port can't be used.
        """
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        address = _parse_address(place)
        try:
            self._address = metrics_listener.listen(self._registry, address)
        except OSError as error:
            raise LabError(f"cannot serve metrics at {address} ({error.strerror}): choose another --metrics") from error

    @property
    def url(self) -> str:
        """Where Prometheus reads them."""
        return f"http://{self._address}/metrics"

    def add(self, recorder: _core.Recorder, file: Path) -> None:
        """Serves the counts of a recorder that was made with :attr:`DURATION_BOUNDS`, and the size of its file."""
        self._registry.register(_RecorderCollector(recorder, file))


class _RecorderCollector(Collector):
    def __init__(self, recorder: _core.Recorder, file: Path) -> None:
        self._recorder = recorder
        self._file = file

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        found = self._recorder.metrics()
        if found is None:
            return
        yield _durations(found["durations"])
        yield _gauge(
            OPEN_CONNECTIONS,
            "Open connections",
            {"side": {side: found[f"{side}_connections"] for side in ("client", "server")}},
        )
        yield _gauge(f"{PREFIX}open_exchanges", "HTTP exchanges whose reply has not ended", found["open_exchanges"])
        yield _gauge(f"{PREFIX}open_streams", "Open event streams of replies", found["open_streams"])
        yield _counter(
            f"{PREFIX}connections_opened",
            "Connections that were opened",
            {"side": {side: found[f"{side}_connections_opened"] for side in ("client", "server")}},
        )
        yield _counter(
            f"{PREFIX}failed_connects", "Connections to servers that could not be made", found["failed_connects"]
        )
        exchanges = CounterMetricFamily(
            f"{PREFIX}exchanges",
            "HTTP exchanges that ended",
            labels=("http_request_method", "status", "ending"),
        )
        for one in found["exchanges"]:
            exchanges.add_metric((one["method"], one["status"], one["ending"]), one["count"])
        yield exchanges
        yield _counter(
            f"{PREFIX}body_bytes",
            "Bytes of HTTP bodies",
            {"direction": {direction: found[f"{direction}_bytes"] for direction in ("request", "reply")}},
        )
        yield _counter(
            f"{PREFIX}unmeasured_requests",
            "Requests whose duration is unknown: no answer was seen, or too many were open",
            found["unmeasured_requests"],
        )
        yield _counter(f"{PREFIX}events", "Events of the traffic", found["events"])
        yield _counter(f"{PREFIX}lost_events", "Events that are not in the recording", found["lost_events"])
        yield _gauge(
            f"{PREFIX}recording_failed", "1 where writing the recording failed, else 0", int(self._recorder.failed)
        )
        if not is_other(self._file) and self._file.exists():
            yield _gauge(f"{PREFIX}recording_bytes", "Size of the recording's file", self._file.stat().st_size)


def _durations(series: Iterable[dict[str, Any]]) -> Metric:
    family = HistogramMetricFamily(
        PROMETHEUS_NAME,
        "From when a request had been read until its answer had been read from the server",
        labels=PROMETHEUS_LABELS,
    )
    for one in series:
        buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
        total = 0
        for bound, number, traced in zip(BOUNDS, one["buckets"], one["exemplars"], strict=True):
            total += number
            if traced is None:
                buckets.append((bound, total))
            else:
                trace = {"trace_id": traced["trace_id"], "span_id": traced["span_id"]}
                buckets.append((bound, total, Exemplar(trace, traced["value"], traced["timestamp"])))
        labels = (one["method"], one["tool"], one["prompt"], one["error"], "tcp")
        family.add_metric(labels, buckets, one["sum"])
    return family


Values = float | dict[str, dict[str, float]]
"""A value, or values by the name and the value of one label."""


def _gauge(name: str, text: str, values: Values) -> Metric:
    return _with_values(GaugeMetricFamily(name, text, labels=tuple(values) if isinstance(values, dict) else ()), values)


def _counter(name: str, text: str, values: Values) -> Metric:
    labels = tuple(values) if isinstance(values, dict) else ()
    return _with_values(CounterMetricFamily(name, text, labels=labels), values)


def _with_values(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    if not isinstance(values, dict):
        family.add_metric((), values)
        return family
    [by_label] = values.values()
    for label, value in by_label.items():
        family.add_metric((label,), value)
    return family


def _parse_address(place: str) -> Address:
    host, _, port = place.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= 65_535):
        raise UsageProblem(f"--metrics takes HOST:PORT or a port on loopback, such as {LOOPBACK}:9464, not {place!r}")
    try:
        return Address.resolved(host or LOOPBACK, int(port))
    except SetupProblem as problem:
        raise LabError(f"--metrics: {problem}") from problem
