"""``mcpace serve --metrics-port``: metrics for Prometheus, with exemplars, and the dashboard that shows them."""

from __future__ import annotations

import json
import re
import socket
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.context import Context

from support.commands import LIMIT_S, closed_port
from support.commands import run as mcpace
from support.serve_process import serving

prometheus = pytest.importorskip("prometheus_client")

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "packaging" / "grafana" / "mcp-servers.json"
NAME = "mcp_server_operation_duration_seconds"
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
SERVER = """
    from mcpace import MCPServer

    mcp = MCPServer("shop")

    @mcp.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool()
    def broken() -> str:
        raise RuntimeError("no")
"""


def call(port: int, tool: str) -> dict[str, Any]:
    meta = {
        "traceparent": f"00-{TRACE}-{SPAN}-01",
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": {"a": 1, "b": 2} if tool == "add" else {}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    request = urllib.request.Request(f"http://127.0.0.1:{port}/mcp", body, headers)
    with urllib.request.urlopen(request, timeout=LIMIT_S) as reply:
        answer: dict[str, Any] = json.loads(reply.read())
    return answer


def scrape(port: int, accept: str = OPEN_METRICS) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=LIMIT_S) as reply:
        assert reply.headers["Content-Type"].startswith(accept.partition(";")[0])
        return str(reply.read().decode())


def counted(text: str) -> dict[tuple[str, str], float]:
    """Number of requests by tool and error."""
    found = re.findall(rf'^{NAME}_count{{error_type="(.*?)",.*gen_ai_tool_name="(.*?)".*}} (\S+)', text, re.M)
    return {(tool, error): float(number) for error, tool, number in found}


def scrape_until(port: int, requests: int) -> str:
    """The metrics once they have this many requests, which are counted in batches of a second."""
    deadline = time.monotonic() + LIMIT_S
    while sum(counted(text := scrape(port)).values()) < requests:
        assert time.monotonic() < deadline, text
    return text


def test_requests_are_counted_by_tool_and_have_exemplars(tmp_path: Path) -> None:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    metrics = closed_port()
    with serving(tmp_path, "server.py", "--port", 0, "--metrics-port", metrics, source=SERVER) as server:
        server.ready()
        for tool in ("add", "add", "broken"):
            assert "result" in call(server.port, tool)
        text = scrape_until(metrics, 3)
        assert counted(text) == {("add", ""): 2.0, ("broken", "tool_error"): 1.0}
        [family] = [one for one in text_string_to_metric_families(text) if one.name == NAME]
        exemplars = [sample.exemplar for sample in family.samples if sample.exemplar is not None]
        assert exemplars and all(one.labels == {"trace_id": TRACE, "span_id": SPAN} for one in exemplars)
        assert all(0 < one.value < LIMIT_S for one in exemplars)
        # The older format has no exemplars.
        plain = scrape(metrics, "text/plain")
        assert counted(plain) == counted(text) and TRACE not in plain
        # The dashboard asks for metrics and labels that there are.
        held = set(re.findall(r"^(\w+)(?:{| )", plain, re.M)) | {"process_cpu_seconds_total"}
        labels = set(re.findall(r'(\w+)="', plain)) | {"job", "instance"}
        for expression in expressions():
            assert (
                set(re.findall(r"\b((?:mcp|process)_\w+(?:_count|_bucket|_sum|_total|_bytes))\b", expression)) <= held
            )
            assert set(re.findall(r"(\w+)(?:=~|!=)", expression)) <= labels


def expressions() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(found) >= 7
    return [*found, *(one["definition"] for one in dashboard["templating"]["list"] if "definition" in one)]


def neighbours() -> int:
    """The first of two ports on which no program listens."""
    while True:
        port = closed_port()
        with socket.socket() as other:
            try:
                other.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
        return port


def test_each_worker_has_a_port_of_its_own(tmp_path: Path) -> None:
    port = neighbours()
    words = ("--port", 0, "--workers", 2, "--metrics-port", port)
    with serving(tmp_path, "server.py", *words, source=SERVER) as server:
        server.ready()
        for worker in (port, port + 1):
            assert f"# TYPE {NAME} histogram" in scrape(worker)


def test_bad_ports_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("mcp = None\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = mcpace("serve", "server.py", "--port", 0, "--metrics-port", port, folder=tmp_path)
    assert (ended.code, ended.stdout) == (3, "")
    assert f"cannot serve metrics at 127.0.0.1:{port}" in ended.sentence()
    for words, sentence in (
        (("--port", 9000, "--metrics-port", 9000), "port 9000 is the server's own"),
        (("--workers", 2, "--metrics-port", 65535), "there is no port 65535 for the metrics of each worker"),
    ):
        ended = mcpace("serve", "server.py", *words, folder=tmp_path)
        assert ended.code == 2 and sentence in ended.sentence()


def test_names_that_clients_choose_make_no_endless_series() -> None:
    from mcpace.server.telemetry.prometheus import MOST_SERIES, PrometheusDurations

    durations = PrometheusDurations()
    for number in range(MOST_SERIES + 50):
        durations.record(0.001, {"mcp.method.name": "tools/call", "gen_ai.tool.name": f"tool{number}"}, Context())
    samples = [one for family in durations._registry.collect() for one in family.samples if one.name == f"{NAME}_count"]
    assert len(samples) == MOST_SERIES + 1
    [other] = [one for one in samples if one.labels["gen_ai_tool_name"] == "other"]
    assert (other.value, other.labels["mcp_method_name"], other.labels["gen_ai_prompt_name"]) == (50, "other", "")
