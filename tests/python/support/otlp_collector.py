"""The OpenTelemetry collector, built once by its own builder (needs Go), and the telemetry that it received."""

from __future__ import annotations

import contextlib
import http.server
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from mcpace.lab.paths import cache_folder
from support import ports

HERE = Path(__file__).parent / "collector"
VERSION = "v0.160.0"
BUILD_S, LIMIT_S = 1800, 60


@dataclass
class Told:
    """A span, or a data point of a metric."""

    name: str
    facts: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass
class Collector:
    """A running collector."""

    port: int
    log: Path

    def spans(self) -> list[Told]:
        """All spans received so far."""
        return [_read(part) for part in re.split(r"^Span #\d+$", self.log.read_text(), flags=re.MULTILINE)[1:]]

    def points(self, metric: str) -> list[Told]:
        """All data points of a metric received so far."""
        found = []
        for part in re.split(r"^Metric #\d+$", self.log.read_text(), flags=re.MULTILINE)[1:]:
            if re.search(rf"-> Name: {re.escape(metric)}$", part, re.MULTILINE):
                found += [
                    _read(point) for point in re.split(r"^HistogramDataPoints #\d+$", part, flags=re.MULTILINE)[1:]
                ]
        return found

    def wait(self, count: int) -> list[Told]:
        """Waits for a number of spans and returns them."""
        until = time.monotonic() + LIMIT_S
        while len(found := self.spans()) < count:
            assert time.monotonic() < until, f"{count} spans were not sent: {[span.name for span in found]}"
            time.sleep(0.05)
        return found


@contextlib.contextmanager
def run_collector(folder: Path) -> Iterator[Collector]:
    """Runs a collector on its own port during the ``with`` block."""
    port = ports.free()
    log = folder / "collector.log"
    with log.open("w") as output:
        command = [str(_built()), "--config", str(HERE / "collector.yaml")]
        child = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=os.environ | {"OTLP_PORT": str(port)}
        )
    try:
        until = time.monotonic() + LIMIT_S
        while "Everything is ready" not in log.read_text():
            assert child.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        yield Collector(port, log)
    finally:
        child.kill()
        child.wait()


def _built() -> Path:
    folder = cache_folder() / "tests" / f"otelcol-{VERSION}"
    program = folder / "otelcol"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        manifest = folder / "builder.yaml"
        manifest.write_text((HERE / "builder.yaml").read_text().replace("dist:", f"dist:\n  output_path: {folder}", 1))
        command = ["go", "run", f"go.opentelemetry.io/collector/cmd/builder@{VERSION}", "--config", str(manifest)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
    return program


def _read(text: str) -> Told:
    head, _, rest = text.partition("\nAttributes:")
    if "Data point attributes:" in text:
        rest, _, head = text.partition("Data point attributes:")[2].partition("\nStartTimestamp")
    facts = dict(re.findall(r"^\s*([A-Z][\w ]*?)\s*: ?(.*)$", head, re.MULTILINE))
    attributes = dict(re.findall(r"^\s+-> ([\w.]+): \w+\((.*)\)$", rest.split("\n\t{")[0], re.MULTILINE))
    return Told(facts.get("Name", ""), facts, attributes)


@contextlib.contextmanager
def stand_in_collector(status: int = 200) -> Iterator[tuple[str, list[ExportMetricsServiceRequest]]]:
    """Runs a handler that parses OTLP messages, for answers that a real collector doesn't give."""
    taken: list[ExportMetricsServiceRequest] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportMetricsServiceResponse().SerializeToString())

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/metrics", taken
        finally:
            server.shutdown()
