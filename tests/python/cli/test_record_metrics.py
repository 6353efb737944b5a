"""``mcpace record --metrics``: metrics of the recorded traffic for Prometheus."""

from __future__ import annotations

import json
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from mcpace.lab.errors import LabError, UsageProblem
from support import commands
from support.prometheus_scrapes import NAME, await_metric, check_dashboard, scrape

pytest.importorskip("prometheus_client")

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HOSTILE = 'a"} 1\n# HELP evil x\\'


class Upstream(BaseHTTPRequestHandler):
    """Answers calls by the name of their tool."""

    protocol_version = "HTTP/1.1"
    may_end = Event()
    """Ends the open streams."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tool = asked["params"]["name"]
        if tool == "missing":
            self._answer(404, b"")
        else:
            failed = {"isError": True, "content": []} if tool == "broken" else {"content": []}
            self._answer(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": failed}).encode())

    def do_GET(self) -> None:
        """Metrics of its own, and at other paths a stream."""
        if self.path == "/metrics":
            self._answer(200, b"own")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"data: {}\n\n")
        self.may_end.wait(commands.LIMIT_S)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@contextmanager
def upstream() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        server.daemon_threads = True
        Upstream.may_end.clear()
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            Upstream.may_end.set()
            server.shutdown()


def call(url: str, tool: str) -> None:
    params = {"name": tool, "arguments": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {"Content-Type": "application/json", "traceparent": f"00-{TRACE}-{SPAN}-01"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=commands.LIMIT_S) as reply:
            reply.read()
    except urllib.error.HTTPError as error:
        error.close()


def test_the_traffic_is_counted_with_exemplars_and_the_dashboard_shows_it(tmp_path: Path) -> None:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    words = ("record", "--out", "r.jsonl.zst", "--metrics", "0", "--upstream")
    with upstream() as origin, commands.start_command(*words, origin, folder=tmp_path) as process:
        said = commands.line(process)
        place = re.search(r"point your client at (http://[\w.:]+)(/mcp) ", said)
        told = re.search(r"metrics at http://127\.0\.0\.1:(\d+)/metrics;", said)
        assert told and place
        port, url = int(told[1]), place[1] + place[2]
        for tool in ("add", "add", "broken", "missing", HOSTILE):
            call(url, tool)
        # The server's own metrics stay visible.
        with urllib.request.urlopen(f"{place[1]}/metrics", timeout=commands.LIMIT_S) as reply:
            assert reply.read() == b"own"
        with urllib.request.urlopen(url, timeout=commands.LIMIT_S) as stream:
            stream.readline()
            plain = await_metric(port, "mcpace_recorder_open_streams 1.0")
            families = {family.name: family for family in text_string_to_metric_families(scrape(port))}
            counts = {
                (one.labels["gen_ai_tool_name"], one.labels["error_type"]): one.value
                for one in families[NAME].samples
                if one.name == f"{NAME}_count"
            }
            assert counts == {("add", ""): 2, ("broken", "tool_error"): 1, ("missing", "404"): 1, (HOSTILE, ""): 1}
            exemplars = [one.exemplar for one in families[NAME].samples if one.exemplar is not None]
            assert exemplars and all(one.labels == {"trace_id": TRACE, "span_id": SPAN} for one in exemplars)
            assert all(0 < one.value < commands.LIMIT_S for one in exemplars)
            values = {
                (sample.name.removeprefix("mcpace_"), *sample.labels.values()): sample.value
                for family in families.values()
                for sample in family.samples
                if sample.name.startswith("mcpace_")
            }
            assert values["recorder_exchanges_total", "complete", "POST", "2xx"] == 4
            assert values["recorder_exchanges_total", "complete", "POST", "4xx"] == 1
            assert values["recorder_exchanges_total", "complete", "GET", "2xx"] == 1
            assert values["recorder_open_exchanges",] == 1
            assert values["open_connections", "client"] >= 1 <= values["open_connections", "server"]
            assert values["recorder_connections_opened_total", "client"] == 7
            assert values["recorder_body_bytes_total", "request"] > 0 < values["recorder_body_bytes_total", "reply"]
            assert values["recorder_events_total",] > 50 and values["recorder_lost_events_total",] == 0
            assert values["recorder_recording_failed",] == 0
            assert 0 < values["recorder_recording_bytes",] <= (tmp_path / "r.jsonl.zst").stat().st_size
            assert values["recorder_unmeasured_requests_total",] == values["recorder_failed_connects_total",] == 0
            # The older format has no exemplars.
            assert TRACE not in plain and f"# TYPE {NAME} histogram" in plain
            check_dashboard(plain, of_recorder=True)
        process.send_signal(signal.SIGINT)
        assert commands.end(process).code == 0


def test_bad_places_are_one_sentence(tmp_path: Path) -> None:
    from mcpace.cli.record_metrics import RecorderMetrics

    for place, kind, sentence in (
        ("127.0.0.1", UsageProblem, "--metrics takes HOST:PORT or a port on loopback"),
        ("99999", UsageProblem, "--metrics takes HOST:PORT or a port on loopback"),
        # No resolver is asked for a label of more than 63 characters.
        (f"{'x' * 64}:1", LabError, "--metrics: there is no host 'x"),
    ):
        with pytest.raises(kind, match=sentence):
            RecorderMetrics(place)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        words = ("record", "--metrics", place, "--upstream", "http://127.0.0.1:1/", "--out", "r")
        ended = commands.run(*words, folder=tmp_path)
    assert ended.code == 3 and f"cannot serve metrics at {place}" in ended.sentence()
    ended = commands.run("record", "--metrics", 0, "--upstream", "stdio:true", "--out", "r", folder=tmp_path)
    assert ended.code == 2 and ended.sentence() == "--metrics needs an upstream with a URL"
    assert not (tmp_path / "r").exists()
