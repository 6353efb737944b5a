"""Releases in which requests of one session hold each other up, each beside one in which they don't."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest

from support.core_server import LIMIT_S
from support.finding_scenes import Recorded, findings_by_code, patient, start_recorder
from support.http_client import HttpClient
from support.release_proofs import interpreter, listening

pytestmark = [pytest.mark.network, pytest.mark.proof]

# Its store of events takes long for the first event of one stream, whatever for.
STORING = """
import asyncio, sys
from mcp.server.fastmcp import FastMCP
from mcp.server.streamable_http import EventStore
class Store(EventStore):
    stored, slow = 0, asyncio.Event()
    async def store_event(self, stream_id, message):
        if message is None and stream_id == "500":
            self.slow.set()
            await asyncio.sleep(0.5)
        self.stored += 1
        return str(self.stored)
    async def replay_events_after(self, last_event_id, send_callback):
        return None
server = FastMCP("shop", host="127.0.0.1", port=int(sys.argv[1]), log_level="CRITICAL", event_store=Store())
@server.tool()
async def wait(ms: int) -> str:
    await asyncio.sleep(ms / 1000)
    return "waited"
@server.tool()
async def stored_slowly() -> str:
    await Store.slow.wait()
    return "yes"
server.run("streamable-http")
"""
WAIT = {"name": "wait", "arguments": {"ms": 60}}


@pytest.mark.parametrize(("release", "held"), [("python@1.25.0", 3), ("python@1.30.0", 0)])
@patient
def test_mcp_1_25_holds_a_sessions_replies_behind_one_that_is_not_begun(release: str, held: int) -> None:
    """The loop that distributes a session's results waited for each result to be taken, by a stream that had not been
    opened yet (python-sdk #2934)."""
    command = [interpreter(release), "-c", STORING]
    with listening(command) as (port, _), start_recorder(f"http://127.0.0.1:{port}/mcp") as record:
        first = record.wire()
        first.initialize()
        slow, *others = wires = [record.wire() for _ in range(4)]
        for number, wire in enumerate(wires):
            wire.headers, wire.last = first.headers, 499 + 100 * number
        for wire in others:
            # Duration of a call without the others.
            assert "result" in wire.ask("tools/call", WAIT)
        slow.begin("tools/call", {"name": "wait", "arguments": {"ms": 1}})
        beside = HttpClient(port)
        beside.initialize()
        assert beside.text("stored_slowly") == "yes"
        for wire in others:
            wire.begin("tools/call", WAIT)
        assert all("result" in wire.answer() for wire in wires)
        findings = findings_by_code(record.finish())
    assert ("head-of-line" in findings) is (held > 0), findings
    if held:
        assert findings["head-of-line"]["context"]["held"] == held
        assert findings["head-of-line"]["context"]["released_with"] == "slower-reply"


# mcp 1.2 serves stdio and HTTP+SSE only. The gateway starts it anew for each session.
GATEWAY = "supergateway@3.4.3"
STDIO = """
import asyncio
from mcp.server.fastmcp import FastMCP
server = FastMCP("shop")
@server.tool()
async def wait(ms: int) -> str:
    await asyncio.sleep(ms / 1000)
    return "waited"
server.run()
"""
SESSIONS, CALLS = 3, 3


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of a gateway before a server of stdio, up to its options."""
    folder = tmp_path_factory.mktemp("gateway")
    words = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder), GATEWAY]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return ["node", str(folder / "node_modules" / "supergateway" / "dist" / "index.js")]


@pytest.mark.parametrize(("release", "serial"), [("python@1.2.0", True), ("python@1.30.0", False)])
@patient
def test_mcp_1_2_serves_a_sessions_requests_one_after_another(
    release: str, serial: bool, gateway: list[str], tmp_path: Path
) -> None:
    (tmp_path / "server.py").write_text(STDIO)
    behind = f"'{interpreter(release)}' '{tmp_path / 'server.py'}'"
    options = ["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--stdio", behind, "--port"]
    with (
        listening([*gateway, *options], stdout=subprocess.DEVNULL) as (port, _),
        start_recorder(f"http://127.0.0.1:{port}/mcp") as record,
    ):
        sessions = [session(record) for _ in range(SESSIONS)]
        asked = [
            record.threads.submit(wire.ask, "tools/call", {"name": "wait", "arguments": {"ms": 300}})
            for at_once in zip(*sessions, strict=True)
            for wire in at_once
        ]
        assert not wait(asked, timeout=LIMIT_S).not_done
        assert all("result" in answer.result() for answer in asked)
        findings = findings_by_code(record.finish())
    assert ("serial-session" in findings) is serial, findings
    if serial:
        assert findings["serial-session"]["confidence"]["level"] == "high"
        assert findings["serial-session"]["context"]["held"] == SESSIONS * (CALLS - 1)


def session(record: Recorded) -> list[HttpClient]:
    """A session begun, and connections for calls of it that are under way together."""
    first = record.wire()
    client: dict[str, Any] = {"name": "test", "version": "1"}
    first.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
    first.headers = {"Mcp-Session-Id": first.reply.headers["mcp-session-id"]}
    begun = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    assert first.send("POST", "/mcp", begun, **kinds)[0] == 202
    wires = [record.wire() for _ in range(CALLS)]
    for number, wire in enumerate(wires):
        wire.headers, wire.last = first.headers, 100 * (number + 1)
    return wires
