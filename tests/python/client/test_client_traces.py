"""Requests of the clients belong to the active span of OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from mcpace import MCPServer, SyncClient, _core
from support.python_server import served

OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def recorder() -> Iterator[_core.Recorder]:
    server = MCPServer("greeter")

    @server.tool()
    def greet() -> str:
        return "hello"

    with served(server) as port:
        recorder = _core.Recorder(f"http://127.0.0.1:{port}/mcp")
        yield recorder


def without_flags(traceparent: str | None) -> str | None:
    """The version and the ids: a recording does not keep the flags of ``_meta``."""
    return None if traceparent is None else traceparent.rsplit("-", 1)[0]


def traceparents(recording: _core.Recording, method: str) -> list[tuple[str | None, str | None]]:
    """The trace in the header and the one in ``_meta``, of each request for ``method``."""
    heads: dict[int, str | None] = {}
    found = []
    for event in recording.events():
        head: dict[str, Any] | None = event["event"].get("request-head")
        end: dict[str, Any] | None = event["event"].get("request-end")
        if head is not None and head["side"] == "front":
            heads[head["ex"]] = without_flags(dict(map(tuple, head["headers"])).get("traceparent"))
        asked = [one for one in end.get("messages", []) if one.get("method") == method] if end is not None else []
        if end is not None:
            found += [(heads[end["ex"]], without_flags(message.get("traceparent"))) for message in asked]
    return found


def test_the_active_span_is_in_the_header_and_in_meta(recorder: _core.Recorder) -> None:
    tracer = TracerProvider().get_tracer("test")
    with SyncClient(recorder.url) as client:
        client.call_tool("greet", {})
        with tracer.start_as_current_span("work") as span:
            client.call_tool("greet", {})
            client.call_tool("greet", {}, meta={"traceparent": OTHER})
        client.call_tool("greet", {})
    context = span.get_span_context()
    active = f"00-{context.trace_id:032x}-{context.span_id:016x}"
    other = without_flags(OTHER)
    assert traceparents(recorder.stop(), "tools/call") == [(None, None), (active, active), (other, other), (None, None)]


def test_opentelemetry_is_not_loaded_for_its_own_sake() -> None:
    script = "import sys, mcpace.client.requests as r; r.request_extras(); print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"
