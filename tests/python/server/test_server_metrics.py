"""``mcpace serve --metrics-port``: metrics for Prometheus, with exemplars, and the dashboard that shows them."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import struct
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.context import Context

from support.commands import LIMIT_S, closed_port
from support.commands import run as mcpace
from support.prometheus_scrapes import NAME, await_metric, check_dashboard, scrape
from support.serve_process import serving

prometheus = pytest.importorskip("prometheus_client")

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
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
        assert 'mcpace_open_connections{side="client"} ' in plain
        check_dashboard(plain, of_recorder=False)


def test_open_connections_are_those_of_clients(tmp_path: Path) -> None:
    metrics = closed_port()
    with serving(tmp_path, "server.py", "--port", 0, "--metrics-port", metrics, source=SERVER) as server:
        server.ready()
        clients = [socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) for _ in range(3)]
        await_metric(metrics, 'mcpace_open_connections{side="client"} 3.0')
        for client in clients[1:]:
            client.close()
        await_metric(metrics, 'mcpace_open_connections{side="client"} 1.0')
        clients[0].close()


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


def status(port: int, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics", headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.read()


def test_metrics_are_for_this_machine_alone(tmp_path: Path) -> None:
    metrics = closed_port()
    words = ("--host", "0.0.0.0", "--port", 0, "--metrics-port", metrics)
    with serving(tmp_path, "server.py", *words, source=SERVER) as server:
        server.ready()
        with socket.socket() as other:
            other.bind(("127.0.0.2", metrics))
        # A page whose name was rebound to this address.
        for headers, code in (
            ({"Host": "evil.example"}, 421),
            ({"Host": f"evil.example:{metrics}"}, 421),
            ({"Origin": "http://evil.example"}, 403),
        ):
            found, body = status(metrics, **headers)
            assert found == code and NAME.encode() not in body
        for headers in ({"Host": f"localhost:{metrics}"}, {"Host": "127.0.0.1"}, {"Host": f"[::1]:{metrics}"}):
            found, body = status(metrics, **headers)
            assert found == 200 and NAME.encode() in body
    with serving(tmp_path, "server.py", *words, "--metrics-host", "0.0.0.0", source=SERVER) as server:
        server.ready()
        assert status(metrics, Host="metrics.example")[0] == 200


def test_clients_that_leave_or_send_nothing_print_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from mcpace.server.running.addresses import Address
    from mcpace.server.telemetry.metrics_listener import _Handler
    from mcpace.server.telemetry.prometheus import PrometheusDurations

    monkeypatch.setattr(_Handler, "timeout", 0.05)
    durations, port = PrometheusDurations(), closed_port()
    durations.listen(Address("127.0.0.1", port))
    durations.listen(Address("127.0.0.1", port))
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as silent:
        assert silent.recv(1) == b""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as leaving:
        leaving.sendall(b"GET /metrics HTTP/1.1\r\n")
        leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert status(port)[0] == 200
    with pytest.raises(OSError, match="in use"):
        PrometheusDurations().listen(Address("127.0.0.1", port))
    assert capfd.readouterr() == ("", "")


def test_a_second_run_in_one_process_shares_the_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpace.server import telemetry
    from mcpace.server.running.addresses import Address

    monkeypatch.setattr(telemetry, "_durations", [])
    ports = closed_port(), closed_port()
    for port in (*ports, ports[0]):
        telemetry.serve_metrics(Address("127.0.0.1", port))
    [durations] = telemetry._durations
    durations.record(0.001, {"mcp.method.name": "ping"}, Context())
    for port in ports:
        assert b'mcp_method_name="ping"' in status(port)[1]


def test_names_of_tools_are_escaped() -> None:
    from prometheus_client import generate_latest
    from prometheus_client.parser import text_string_to_metric_families

    from mcpace.server.telemetry.prometheus import LONGEST_LABEL, PrometheusDurations

    durations = PrometheusDurations()
    names = ['a"} 1\n# HELP evil x', "back\\slash", "\u202e\u2028", "x" * 5_000]
    for name in names:
        durations.record(0.001, {"mcp.method.name": "tools/call", "gen_ai.tool.name": name}, Context())
    text = generate_latest(durations._registry).decode()
    counts = [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == f"{NAME}_count"
    ]
    assert {one.labels["gen_ai_tool_name"] for one in counts} == {name[:LONGEST_LABEL] for name in names}
    assert not any(line.startswith("# HELP evil") for line in text.splitlines())


def test_bad_ports_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("mcp = None\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = mcpace("serve", "server.py", "--port", 0, "--metrics-port", port, folder=tmp_path)
    assert (ended.code, ended.stdout) == (3, "")
    assert f"cannot serve metrics at 127.0.0.1:{port}" in ended.sentence()
    for words, sentence in (
        (("--port", 9000, "--metrics-port", 9000), "port 9000 is the server's own"),
        (("--workers", 2, "--port", 9001, "--metrics-port", 9000), "port 9001 is the server's own"),
        (("--workers", 2, "--metrics-port", 65535), "there is no port 65535 for the metrics of each worker"),
    ):
        ended = mcpace("serve", "server.py", *words, folder=tmp_path)
        assert ended.code == 2 and sentence in ended.sentence()
    for host, sentence in (("no host", "there is no host 'no host'"), ("192.0.2.1", "or --metrics-host")):
        place = ("--metrics-port", closed_port(), "--metrics-host", host)
        ended = mcpace("serve", "server.py", "--port", 0, *place, folder=tmp_path)
        assert ended.code == 3 and sentence in ended.sentence()


@pytest.mark.parametrize("label", ["gen_ai.tool.name", "error.type"])
def test_names_and_codes_make_no_endless_series(label: str) -> None:
    from mcpace.server.telemetry.prometheus import MOST_SERIES, PrometheusDurations

    durations = PrometheusDurations()
    for number in range(MOST_SERIES + 50):
        durations.record(0.001, {"mcp.method.name": "tools/call", label: f"{number}"}, Context())
    samples = [one for family in durations._registry.collect() for one in family.samples if one.name == f"{NAME}_count"]
    assert len(samples) == MOST_SERIES + 1
    [other] = [one for one in samples if one.labels[label.replace(".", "_")] == "other"]
    assert (other.value, other.labels["mcp_method_name"], other.labels["gen_ai_prompt_name"]) == (50, "other", "")
