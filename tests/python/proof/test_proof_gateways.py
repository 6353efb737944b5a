"""Releases as gateways before recorded servers, each beside one that asks them as it should."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mcpace import MCPServer
from mcpace.lab import targets
from mcpace.lab.targets import Tool
from support.commands import closed_port, run
from support.finding_scenes import Receive, Scope, Send, answer_request, findings_of_both_sides, patient, start_recorder
from support.finding_scenes import serve_app as asgi
from support.python_server import served as serving
from support.release_proofs import interpreter, listening, record_release

pytestmark = [pytest.mark.network, pytest.mark.proof]

# The URLs of what is behind it, then its own port.
PROXY = """
import sys
import fastmcp
try:
    from fastmcp.server import create_proxy
except ImportError:
    create_proxy = fastmcp.FastMCP.as_proxy
servers = {f"s{number}": {"url": url, "transport": "http"} for number, url in enumerate(sys.argv[1:-1])}
proxy = create_proxy(sys.argv[1] if len(servers) == 1 else {"mcpServers": servers})
proxy.run("http", host="127.0.0.1", port=int(sys.argv[-1]), path="/mcp/", log_level="critical")
"""
SERVERS = 3
LISTING_S = 0.3


def greet(name: str) -> str:
    return f"Hello, {name}!"


@pytest.mark.parametrize(("several", "release"), [(True, "fastmcp@2.10.0"), (False, "fastmcp@4.1.6")])
def test_fastmcp_as_a_proxy_asked_several_times_for_a_call(several: bool, release: str, tmp_path: Path) -> None:
    made: MCPServer[Any] = MCPServer("shop")
    made.tool()(greet)
    with ExitStack() as stack:
        behind = stack.enter_context(start_recorder(f"http://127.0.0.1:{stack.enter_context(serving(made))}/mcp"))
        command = [interpreter(release), "-c", PROXY, behind.recorder.url]
        port, _ = stack.enter_context(listening(command))
        target = targets.parse_target(f"http://127.0.0.1:{port}/mcp/", tool=Tool("greet", {"name": "x"}))
        before = record_release("go@1.8.0", target, tmp_path)
        assert ("amplification" in findings_of_both_sides(before, [behind], tmp_path)) is several
    assert "amplification" not in {finding["code"] for finding in before.findings()}


def test_the_gateway_command_shows_what_fastmcp_as_a_proxy_adds_and_changes(tmp_path: Path) -> None:
    program = tmp_path / "proxy.py"
    program.write_text(PROXY)
    through = f"serve:{interpreter('fastmcp@4.1.6')} {program} {{direct}} {closed_port()}"
    ended = run(
        *("gateway", "--direct", "profile:simple", "--through", through),
        *("--trials", "6", "--calls", "4", "--duration", "0s", "--json"),
        folder=tmp_path,
    )
    assert ended.code == 0, ended.stderr
    facts = json.loads(ended.stdout)["gateway"]
    median = next(one for one in facts["quantiles"] if (one["operation"], one["percentile"]) == ("call", "p50"))
    assert median["low_s"] > 0, "an interpreter between client and server costs more than chance"
    told = {(one["code"], one["name"]): one for one in facts["changes"]}
    assert told["server", ""]["through"] != told["server", ""]["direct"]
    assert ("connections", "") in told
    assert facts["inside"]["requests"] >= 1 and facts["inside"]["server_s"] < facts["inside"]["call_s"]


class Listing:
    """A server with one tool, which takes its time for its list."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await answer_request(scope, receive, send, self.result)

    async def result(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["method"]:
            case "initialize":
                server = {"name": "listing", "version": "1"}
                revision = asked["params"]["protocolVersion"]
                return {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": server}
            case "tools/list":
                await asyncio.sleep(LISTING_S)
                return {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]}
            case _:
                return {"content": [{"type": "text", "text": "hello"}]}


@pytest.mark.parametrize(("one_by_one", "release"), [(True, "fastmcp@2.11.2"), (False, "fastmcp@4.1.6")])
@patient
def test_fastmcp_as_a_proxy_asked_its_servers_one_by_one(one_by_one: bool, release: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        behind = [stack.enter_context(start_recorder(stack.enter_context(asgi(Listing())))) for _ in range(SERVERS)]
        command = [interpreter(release), "-c", PROXY, *(one.recorder.url for one in behind)]
        port, _ = stack.enter_context(listening(command))
        target = targets.parse_target(f"http://127.0.0.1:{port}/mcp/", tool=Tool("s0_greet", {"name": "x"}))
        before = record_release("python@1.30.0", target, tmp_path)
        found = findings_of_both_sides(before, behind, tmp_path)
    assert ("serial-fan-out" in found) is one_by_one, found
    if one_by_one:
        assert found["serial-fan-out"]["context"]["servers"] == SERVERS
        assert found["serial-fan-out"]["context"]["methods"] == ["tools/list"]
