"""OpenTelemetry data of a server's requests: in memory, and received by a real collector over OTLP."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mcpace import MCPError, MCPServer
from mcpace.server import telemetry
from mcpace.server.running.errors import UsageProblem
from mcpace.server.telemetry.conventions import DURATION
from mcpace.server.telemetry.deferred_spans import DeferredSpans
from mcpace.server.telemetry.spans import RequestRecorder
from support.otlp_collector import run_collector
from support.python_server import Client, served

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
LAYERS = ["mcpace.transport", "mcpace.dispatch", "mcpace.service"]


class StartedSpans(SpanProcessor):
    """Counts spans at their start."""

    def __init__(self) -> None:
        self.count = 0

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.count += 1
        assert not trace.get_current_span().get_span_context().is_valid, "the span must not be current yet"


class Watched:
    """A server's port, and the telemetry of its requests."""

    def __init__(self, server: MCPServer[Any], names: telemetry.SpanNames = "conventions") -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.started = StartedSpans()
        self.teller = RequestRecorder(names, self.provider, MeterProvider([self.reader]), registry=server.registry)
        assert server.__mcpace__().core.observe(self.teller.observations)
        self.server = server

    def spans(self) -> dict[str, ReadableSpan]:
        """The spans since the last call, by name."""
        self.teller.flush()
        found = self.exporter.get_finished_spans()
        self.exporter.clear()
        assert len({span.name for span in found}) == len(found), [span.name for span in found]
        return {span.name: span for span in found}

    def forget(self) -> None:
        """Records what ended, and forgets the spans."""
        self.teller.flush()
        self.exporter.clear()

    def points(self) -> list[Any]:
        """The histogram's data points."""
        self.teller.flush()
        data = self.reader.get_metrics_data()
        assert data is not None
        [metric] = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        assert (metric.name, metric.unit) == (DURATION, "s")
        return list(metric.data.data_points)


def shop() -> MCPServer[Any]:
    server = MCPServer("shop")

    @server.tool()
    def add(a: int, b: int) -> int:
        with watched.provider.get_tracer("own").start_as_current_span("own"):
            return a + b

    @server.tool()
    async def slow(a: int) -> str:
        await asyncio.sleep(0)
        with watched.provider.get_tracer("own").start_as_current_span("own"):
            return str(baggage.get_baggage("user"))

    @server.tool()
    def marks() -> str:
        span = trace.get_current_span()
        assert span.is_recording()
        span.set_attribute("mark", "set")
        assert dict(span.attributes) == {"mark": "set"}, "a member of the SDK's spans"  # type: ignore[attr-defined]
        return f"{span.get_span_context().span_id:016x}"

    @server.tool()
    def plain() -> int:
        return watched.started.count

    @server.tool()
    def broken() -> str:
        raise RuntimeError("no")

    @server.tool()
    def refuses() -> str:
        raise MCPError(-32000, "no" * 500)

    @server.resource("note://one")
    def note() -> str:
        with watched.provider.get_tracer("own").start_as_current_span("own"):
            return "one"

    @server.resource("note://by/{name}{?token}", name="notes")
    def notes(name: str, token: str = "") -> str:
        return name

    @server.prompt()
    def greet(name: str) -> str:
        return f"Greet {name}"

    return server


watched: Watched


@pytest.fixture
def client() -> Iterator[Client]:
    global watched
    watched = Watched(shop())
    with served(watched.server) as port:
        yield Client(port)


def parents(spans: dict[str, ReadableSpan]) -> dict[str, str | None]:
    """The name of each span's parent, or the id of a remote parent."""
    names = {span.context.span_id: name for name, span in spans.items() if span.context}
    found = {}
    for name, span in spans.items():
        found[name] = None if span.parent is None else names.get(span.parent.span_id, f"{span.parent.span_id:016x}")
    return found


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_call_is_a_span_with_its_layers_and_what_the_tool_does_is_within(client: Client, era: str) -> None:
    if era == "legacy":
        client.begin()
        watched.spans()
    for _ in range(30):
        # The first calls run on a thread, later ones inline on the I/O thread.
        assert client.call("add", a=1, b=2)["structuredContent"] == {"result": 3}
        spans = watched.spans()
        assert set(spans) == {"tools/call add", "own", *LAYERS}
        root = spans["tools/call add"]
        assert root.kind == trace.SpanKind.SERVER
        assert root.status.is_unset
        assert (
            dict(root.attributes or {}).items()
            >= {
                "mcp.method.name": "tools/call",
                "mcp.protocol.version": "2026-07-28" if era == "modern" else "2025-11-25",
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "add",
                "network.transport": "tcp",
            }.items()
        )
        assert parents(spans) == {
            "tools/call add": None,
            "own": "mcpace.service",
            **dict.fromkeys(LAYERS, "tools/call add"),
        }
        order = [
            root.start_time,
            spans["mcpace.dispatch"].start_time,
            spans["mcpace.service"].start_time,
            spans["own"].start_time,
            spans["own"].end_time,
            spans["mcpace.service"].end_time,
            spans["mcpace.dispatch"].end_time,
        ]
        assert order == sorted(order)
        assert root.end_time == spans["mcpace.dispatch"].end_time


def test_the_current_span_of_a_function_is_the_services(client: Client) -> None:
    span_id = client.call("marks")["structuredContent"]["result"]
    service = watched.spans()["mcpace.service"]
    assert service.context
    assert f"{service.context.span_id:016x}" == span_id
    assert dict(service.attributes or {}) == {"mark": "set"}


def test_a_function_that_uses_no_span_has_none_made_during_its_call(client: Client) -> None:
    watched.provider.add_span_processor(watched.started)
    for _ in range(20):
        assert client.call("plain")["structuredContent"] == {"result": 0}
        spans = watched.spans()
        assert watched.started.count == len(spans) == 4
        dispatch, service = spans["mcpace.dispatch"], spans["mcpace.service"]
        order = [dispatch.start_time or 0, service.start_time or 0, service.end_time or 0, dispatch.end_time or 0]
        assert order == sorted(order)
        watched.started.count = 0


def test_the_clients_context_is_the_parent_and_its_baggage_is_the_tools(client: Client) -> None:
    meta = {"traceparent": TRACEPARENT, "tracestate": "a=b", "baggage": "user=alice"}
    client.headers = {"traceparent": TRACEPARENT.replace(PARENT, "00f067aa0ba902b7")}
    reply = client.request("tools/call", {"name": "slow", "arguments": {"a": 1}}, **meta)
    assert reply["result"]["content"][0]["text"] == "alice"
    spans = watched.spans()
    assert parents(spans)["tools/call slow"] == PARENT
    assert parents(spans)["own"] == "mcpace.service"
    assert {span.context.trace_id for span in spans.values() if span.context} == {int(TRACE, 16)}
    root = spans["tools/call slow"]
    assert root.context is not None
    assert root.context.trace_state.get("a") == "b"
    assert [f"{link.context.span_id:016x}" for link in root.links] == ["00f067aa0ba902b7"]


def test_headers_are_the_parent_where_the_message_has_none(client: Client) -> None:
    client.headers = {"traceparent": TRACEPARENT}
    client.call("add", a=1, b=2)
    spans = watched.spans()
    assert parents(spans)["tools/call add"] == PARENT
    assert not spans["tools/call add"].links
    client.headers = {"traceparent": "rubbish"}
    client.call("add", a=1, b=2)
    assert parents(watched.spans())["tools/call add"] is None


def test_failures_are_told_by_the_conventions(client: Client) -> None:
    client.call("broken")
    root = watched.spans()["tools/call broken"]
    assert (root.attributes or {})["error.type"] == "tool_error"
    assert root.status.status_code == trace.StatusCode.ERROR
    client.request("resources/read", {"uri": "note://none"})
    root = watched.spans()["resources/read"]
    attributes = dict(root.attributes or {})
    assert attributes["error.type"] == attributes["rpc.response.status_code"]
    assert attributes["mcp.resource.uri"] == "note://none"
    assert root.status.description
    client.request("tools/call", {"name": "refuses"})
    assert watched.spans()["tools/call refuses"].status.description == "no" * 100


def test_a_query_may_hold_secrets_and_is_told_to_nobody(client: Client) -> None:
    for uri, told in {
        "note://by/ada?token=secret": "note://by/ada",
        "note://none?a=secret": "note://none",
        "note://none#secret": "note://none",
    }.items():
        client.request("resources/read", {"uri": uri})
        root = watched.spans()["resources/read"]
        assert (root.attributes or {})["mcp.resource.uri"] == told
        assert "mcp.binding.name" not in (root.attributes or {})


def test_names_of_tools_that_there_are_not_are_nobodys_attribute(client: Client) -> None:
    for number in range(3):
        client.request("tools/call", {"name": f"none-{number}"})
        root = watched.spans()["tools/call"]
        assert "gen_ai.tool.name" not in (root.attributes or {})
    assert [point.count for point in watched.points()] == [3]


def test_resources_and_prompts_and_lists_are_told_too(client: Client) -> None:
    client.request("resources/read", {"uri": "note://one"})
    spans = watched.spans()
    assert parents(spans)["own"] == "mcpace.service"
    assert parents(spans)["mcpace.service"] == "resources/read"
    client.request("prompts/get", {"name": "greet", "arguments": {"name": "A"}})
    assert (watched.spans()["prompts/get greet"].attributes or {})["gen_ai.prompt.name"] == "greet"
    client.request("tools/list")
    assert set(watched.spans()) == {"tools/list", "mcpace.transport", "mcpace.dispatch"}


def test_durations_are_counted_by_tool(client: Client) -> None:
    for _ in range(5):
        client.call("add", a=1, b=2)
    client.call("broken")
    points = {str((point.attributes or {})["gen_ai.tool.name"]): point for point in watched.points()}
    assert (points["add"].count, points["broken"].count) == (5, 1)
    assert "error.type" not in points["add"].attributes
    assert points["broken"].attributes["error.type"] == "tool_error"
    assert 0 < points["add"].sum < 60
    assert points["add"].explicit_bounds[0] == 0.0001


def test_older_names_are_a_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    global watched
    assert telemetry.span_names() == "conventions"
    monkeypatch.setenv("MCPACE_SPAN_NAMES", "dotted")
    watched = Watched(shop(), telemetry.span_names())
    with served(watched.server) as port:
        client = Client(port)
        for method, params, bound in (
            ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, "add"),
            ("tools/call", {"name": "none"}, None),
            ("resources/read", {"uri": "note://one"}, "note"),
            ("resources/read", {"uri": "note://by/ada"}, "notes"),
            ("resources/read", {"uri": "note://none"}, None),
            ("prompts/get", {"name": "greet", "arguments": {"name": "A"}}, "greet"),
            ("tools/list", {}, None),
        ):
            client.request(method, params)
            root = watched.spans()[f"mcp.{method.replace('/', '.')}"]
            assert (root.attributes or {}).get("mcp.binding.name") == bound
    monkeypatch.setenv("MCPACE_SPAN_NAMES", "nonsense")
    with pytest.raises(UsageProblem, match="MCPACE_SPAN_NAMES takes conventions or dotted, not 'nonsense'"):
        telemetry.span_names()


@pytest.mark.parametrize(
    ("given", "is_told"), [({}, True), ({"MCPACE_TELEMETRY": "off"}, False), ({"MCPACE_TELEMETRY": "on"}, True)]
)
def test_who_listens_is_told_unless_it_is_switched_off(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], is_told: bool
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    assert MCPServer("a").__mcpace__().core.observe(RequestRecorder("conventions").observations), "nobody listens"
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", TracerProvider())
    heard = MCPServer("b").__mcpace__().core
    assert heard.observe(RequestRecorder("conventions").observations) is not is_told
    monkeypatch.setenv("MCPACE_TELEMETRY", "maybe")
    with pytest.raises(UsageProblem, match="MCPACE_TELEMETRY takes on or off, not 'maybe'"):
        telemetry.observe(heard)


def test_a_program_may_configure_it_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "_configured", {"enabled": None, "span_names": None})
    monkeypatch.setenv("MCPACE_SPAN_NAMES", "conventions")
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", TracerProvider())
    telemetry.configure(enabled=False, span_names="dotted")
    assert telemetry.span_names() == "dotted"
    assert MCPServer("a").__mcpace__().core.observe(RequestRecorder("dotted").observations), "nobody listens"
    with pytest.raises(ValueError, match="span_names takes conventions or dotted, not 'dots'"):
        telemetry.configure(span_names="dots")  # type: ignore[arg-type]


def test_a_provider_that_fails_fails_no_call_and_is_said_once(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the exporter is broken")

    monkeypatch.setattr(watched.teller, "_tracer", type("Broken", (), {"start_span": fail})())
    for _ in range(3):
        assert client.call("add", a=1, b=2)["structuredContent"] == {"result": 3}
        watched.teller.flush()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["a request could not be recorded with OpenTelemetry"]


def test_a_log_handler_may_ask_for_the_current_span_while_making_it_fails(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the exporter is broken")

    def ask_for_span(_: logging.LogRecord) -> bool:
        return trace.get_current_span().get_span_context() is not None

    monkeypatch.setattr(watched.teller, "_tracer", type("Broken", (), {"start_span": fail})())
    monkeypatch.setattr(caplog.handler, "filters", [ask_for_span])
    assert client.call("marks")["isError"], "an invalid span records nothing"


def test_the_spans_of_a_call_need_no_cycle_collector(client: Client) -> None:
    client.call("plain")
    watched.spans()
    gc.collect()
    gc.disable()
    try:
        for _ in range(200):
            client.call("plain")
        watched.forget()
        # The server may still hold those of the last calls.
        assert sum(type(one) is DeferredSpans for one in gc.get_objects()) < 20
    finally:
        gc.enable()


SERVER = """
    from opentelemetry import metrics, trace
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())]))

    from mcpace import MCPServer

    server = MCPServer("traced")

    @server.tool()
    def add(a: int, b: int) -> int:
        with trace.get_tracer("own").start_as_current_span("own"):
            return a + b

    if __name__ == "__main__":
        server.run()
"""


def test_a_real_collector_gets_spans_and_metrics_over_otlp(tmp_path: Path) -> None:
    """A stdio server that ends right after the answers, so the remaining telemetry is sent at the end of the
    process."""
    import json
    import os

    program = tmp_path / "server.py"
    program.write_text(textwrap.dedent(SERVER))
    meta = {
        "traceparent": TRACEPARENT,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": meta}
    calls = [{"jsonrpc": "2.0", "id": f"call-{n}", "method": "tools/call", "params": params} for n in range(3)]
    with run_collector(tmp_path) as collector:
        done = subprocess.run(
            [sys.executable, str(program)],
            input="".join(json.dumps(call) + "\n" for call in calls),
            env=os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}"},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.count('"result":3') == 3, done.stdout + done.stderr
        spans = collector.wait(15)
        points = collector.points(DURATION)
    roots = [span for span in spans if span.name == "tools/call add"]
    assert sorted(root.attributes["jsonrpc.request.id"] for root in roots) == ["call-0", "call-1", "call-2"]
    for root in roots:
        assert (root.facts["Trace ID"], root.facts["Parent ID"], root.facts["Kind"]) == (TRACE, PARENT, "Server")
        assert root.attributes["network.transport"] == "pipe"
        children = [span.name for span in spans if span.facts["Parent ID"] == root.facts["ID"]]
        assert sorted(children) == sorted(LAYERS)
    services = {span.facts["ID"] for span in spans if span.name == "mcpace.service"}
    assert {span.facts["Parent ID"] for span in spans if span.name == "own"} == services
    [point] = points
    assert (point.facts["Count"], point.attributes["gen_ai.tool.name"]) == ("3", "add")
