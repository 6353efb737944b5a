"""The ladder of ``mcpace explain``: the layer of a real server in which the time of a call is."""

from __future__ import annotations

import http.server
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpace.lab.explain.factors_catalogue import largest_effect
from mcpace.lab.explain.ladder import climb_ladder, divide_call, open_session
from mcpace.lab.load.plan import Closed, HttpTarget, LoadPlan, Operation, StdioTarget
from mcpace.lab.machine import new_run
from mcpace.report.model.ladder import Ladder, Layer, Rung
from mcpace.report.model.run import Run
from mcpace.report.tables import tables
from mcpace.report.words import ladder as words
from mcpace.report.words.factors import left_out
from support import commands

BUDGET_S = 10.0
TOOL = {"name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


class Delayed(http.server.BaseHTTPRequestHandler):
    """An MCP server that sleeps in one layer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    layer, seconds = "", 0.0
    requests: list[tuple[str, str | None]]
    """Path and authorization of each request."""

    def log_message(self, format: str, *args: Any) -> None: ...

    def spend_time(self, layer: str) -> None:
        if layer == self.layer:
            time.sleep(self.seconds)

    def do_GET(self) -> None:
        self.requests.append((self.path, self.headers.get("authorization")))
        self.spend_time("http")
        self.answer(405 if self.path == "/mcp" else 404, b"")

    def do_DELETE(self) -> None:
        self.answer(200, b"")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.spend_time("http")
        if "id" not in asked:
            return self.answer(202, b"")
        self.spend_time("sdk")
        reply: dict[str, Any] = {"result": {}}
        match asked["method"]:
            case "initialize":
                server = {"name": "delayed", "version": "1"}
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
                reply = {"result": result}
            case "tools/list":
                reply = {"result": {"tools": [TOOL]}}
            case "tools/call":
                self.spend_time("dispatch")
                if asked["params"]["name"] == "t":
                    self.spend_time("tool")
                    reply = {"result": {"content": [{"type": "text", "text": "ok"}]}}
                else:
                    reply = {"error": {"code": -32602, "message": "unknown tool"}}
        return self.answer(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply}).encode())

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def delayed_server(layer: str, seconds: float) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """Yields the URL of a server that sleeps in one layer, and the requests by GET that it got."""
    requests: list[tuple[str, str | None]] = []
    handler = type("Handler", (Delayed,), {"layer": layer, "seconds": seconds, "requests": requests})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", requests
    finally:
        server.shutdown()
        server.server_close()


def plan_of(target: HttpTarget | StdioTarget) -> LoadPlan:
    return LoadPlan(
        target=target, revision="2025-06-18", model=Closed(vus=1), duration_s=1.0, warm_up_s=0.0, timeout_s=10.0,
        operations=[Operation(name="t", kind="call", tool="t", arguments={})],
    )  # fmt: skip


def climb(target: HttpTarget | StdioTarget, budget_s: float = BUDGET_S) -> Ladder:
    plan = plan_of(target)
    with open_session(plan) as session:
        return climb_ladder(plan, session, budget_s)


def largest_layer(ladder: Ladder) -> str:
    return max(ladder.layers, key=lambda layer: layer.seconds).code


@pytest.mark.parametrize(
    ("layer", "seconds"), [("tool", 0.3), ("tool", 3.0), ("http", 0.012), ("sdk", 0.012), ("dispatch", 0.012)]
)
def test_the_layer_that_takes_the_time_is_named(layer: str, seconds: float) -> None:
    with delayed_server(layer, seconds) as (url, _):
        ladder = climb(HttpTarget(url))
    assert largest_layer(ladder) == layer, ladder
    run = new_run("explain", {})
    run.ladder = ladder
    [sentence] = words.sentences(run)
    assert words.LAYERS[layer].place in sentence
    [table] = tables(run)
    assert [row[0] for row in table.rows] == [words.rung_words(rung) for rung in ladder.rungs]
    assert Run.from_json(run.to_json()).ladder == ladder


def test_a_slow_tool_is_called_a_few_times_only() -> None:
    with delayed_server("tool", 0.3) as (url, _):
        ladder = climb(HttpTarget(url))
    numbers = {rung.code: len(rung.samples_s) for rung in ladder.rungs}
    assert 2 <= numbers["tool"] <= 4
    assert numbers["ping"] == 15


def test_each_request_is_tried_once_even_without_a_budget() -> None:
    with delayed_server("", 0.0) as (url, _):
        ladder = climb(HttpTarget(url), budget_s=0.0)
    assert {rung.code for rung in ladder.rungs} == {"tcp", "http", "ping", "list", "unknown-tool", "tool"}
    assert {len(rung.samples_s) for rung in ladder.rungs if rung.code not in ("tcp", "http")} == {1}


def test_the_path_that_does_not_exist_gets_no_token() -> None:
    with delayed_server("", 0.0) as (url, requests):
        ladder = climb(HttpTarget(url, [("authorization", "Bearer secret")]))
    [http_rung] = [rung for rung in ladder.rungs if rung.code == "http"]
    assert http_rung.answer == "404 Not Found"
    assert {authorization for path, authorization in requests if path != "/mcp"} == {None}


STDIO = """
import time
from mcpace import MCPServer

server = MCPServer("one")


@server.tool(annotations={"readOnlyHint": True})
def t() -> str:
    time.sleep(0.05)
    return "done"


server.run()
"""


def test_a_server_over_stdio_has_a_ladder_without_connection(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(STDIO)
    done = commands.run("explain", f"stdio:{sys.executable} {script}", "--budget", "8s", "--json", folder=tmp_path)
    assert done.code == 0, done.stderr
    run = Run.from_json(done.stdout)
    assert run.ladder is not None
    assert [rung.code for rung in run.ladder.rungs] == ["ping", "list", "unknown-tool", "tool"]
    assert largest_layer(run.ladder) == "tool"


def test_layers_add_up_to_the_call() -> None:
    medians = {"tcp": 0.002, "tls": 0.004, "http": 0.003, "ping": 0.010, "list": 0.050, "unknown-tool": 0.008}
    rungs = [Rung(code=code, median_s=median) for code, median in (medians | {"tool": 0.030}).items()]
    seconds = {layer.code: round(layer.seconds, 6) for layer in divide_call(rungs)}
    # The unknown tool was quicker than the ping, so what precedes every tool takes nothing.
    assert seconds == {"network": 0.002, "http": 0.001, "sdk": 0.007, "dispatch": 0.0, "tool": 0.020}
    assert divide_call([Rung(code="ping", median_s=0.1), Rung(code="tool", failure="gone")]) == []


def test_no_layer_is_named_alone_where_none_takes_most() -> None:
    run = new_run("explain", {})
    run.ladder = Ladder(
        layers=[Layer(code="network", seconds=0.4), Layer(code="sdk", seconds=0.35), Layer(code="tool", seconds=0.25)]
    )
    assert words.sentences(run) == [
        "No layer takes most of it: network 40\N{NO-BREAK SPACE}%, every MCP request 35\N{NO-BREAK SPACE}% "
        "and the tool 25\N{NO-BREAK SPACE}%."
    ]


def test_factors_that_can_not_matter_beside_a_slow_tool_are_left_out(tmp_path: Path) -> None:
    with delayed_server("tool", 0.3) as (url, _):
        done = commands.run("explain", url, "--budget", "6s", "--json", folder=tmp_path)
    assert done.code == 0, done.stderr
    run = Run.from_json(done.stdout)
    small = {one.code for one in run.factors if "largest_effect_s" in one.facts}
    assert small == {"quick-ack", "connection", "json", "sse", "listing", "no-session"}
    assert {one.verdict for one in run.factors if one.code in small} == {"left-out"}
    assert any("too short" in sentence for sentence in left_out(run))


def test_a_ladder_without_a_slow_tool_leaves_no_factor_out() -> None:
    medians = dict.fromkeys(("tcp", "http", "ping", "list", "unknown-tool"), 0.041) | {"tool": 0.3}
    slow = Ladder(rungs=[Rung(code=code, median_s=median) for code, median in medians.items()])
    # Replies of 40 ms without a tool may be delayed acknowledgements.
    assert largest_effect("quick-ack", slow) is None
    assert largest_effect("json", slow) == 0.041
    assert largest_effect("argument", slow) is None
    assert largest_effect("json", Ladder()) is None
