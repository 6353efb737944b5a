"""The command ``mcpace measure`` with mcpace's runtime: the server's layer timings, in all transports and modes."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from math import isclose
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mcpace import _core
from mcpace.report.model.run import Run, ServerSplit
from support.commands import mcp_answer, read_request, reply, run, tcp_server

ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
WORKS_S = 0.02
"""How long the tool that is called works."""


@pytest.fixture(scope="module")
def everything() -> Path:
    cargo = shutil.which("cargo")
    assert cargo is not None, "Cargo is needed to build the server"
    build = [cargo, "build", "--quiet", "--locked", "-p", "mcpace-serve", "--example", "everything"]
    subprocess.run(build, cwd=ROOT, check=True, timeout=600)
    return TARGET / "debug" / "examples" / "everything"


@contextmanager
def serving(program: Path, *options: str) -> Iterator[str]:
    """Runs the server over HTTP as a process and yields its URL."""
    with subprocess.Popen([program, "http", *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("listening on ").strip()
        finally:
            process.kill()


def measured(target: str, folder: Path, *options: str) -> Run:
    out = folder / "run.json"
    call = ("--tool", "slow_compute", "--args", json.dumps({"seconds": WORKS_S}))
    ended = run("measure", target, *call, "--trials", 3, "--out", out, *options, folder=folder)
    assert ended.code == 0, ended.stderr
    # The terminal shows the layers of the run, too.
    assert "the server says: transport " in ended.stdout, ended.stdout
    return Run.load(out)


def split_of_call(result: Run) -> tuple[ServerSplit, float]:
    """The layers of the call, and the call's duration at the client."""
    (case,) = [case for case in result.cases if case.operation == "call"]
    assert case.ledger_s is not None
    split = case.ledger_s.server_split
    assert split is not None, "the server told nothing"
    return split, case.ledger_s.total()


def check(split: ServerSplit, call_s: float) -> None:
    # The tool waits by a timer, which never fires early. Its time is the service's and no other layer's: counted twice,
    # the layers come to more than the call.
    assert split.service >= WORKS_S
    assert split.transport > 0
    assert split.dispatch > 0
    assert split.rest is not None
    assert split.transport + split.dispatch + split.service + split.rest <= call_s
    assert (split.reported, split.of_calls, split.rejected) == (2, 2, 0)


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("response", ["json", "sse"])
def test_a_tool_that_works_shows_in_service_over_http(
    everything: Path, tmp_path: Path, revision: str, response: str
) -> None:
    with serving(everything, "--response", response) as url:
        check(*split_of_call(measured(url, tmp_path, "--revision", revision)))


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_tool_that_works_shows_in_service_over_stdio(everything: Path, tmp_path: Path, revision: str) -> None:
    check(*split_of_call(measured(f"stdio:{everything} stdio", tmp_path, "--revision", revision)))


def test_the_header_tells_the_layers_only_where_the_server_is_set_to(everything: Path) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "slow_compute", "arguments": {"seconds": WORKS_S}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "slow_compute",
    }
    for options, is_told in (((), False), (("--server-timing",), True)):
        with serving(everything, *options) as url:
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
            connection.request("POST", "/mcp", body, headers)
            reply = connection.getresponse()
            result = json.loads(reply.read())["result"]
            connection.close()
        told = reply.getheader("Server-Timing")
        # Nobody asked for it in `_meta`.
        assert "dev.mcpace/timing" not in result.get("_meta", {})
        assert (told is not None) == is_told
        if told is not None:
            layers = dict(part.split(";dur=") for part in told.split(", "))
            assert list(layers) == ["transport", "dispatch", "service"]
            assert float(layers["service"]) >= WORKS_S * 1e3
            assert all(float(millis) > 0 for millis in layers.values())


def test_the_header_splits_the_ledger_of_a_client_that_does_not_ask(everything: Path) -> None:
    with serving(everything, "--server-timing", "--response", "json") as url:
        client = _core.Client(url, server_timing=False, limit_s=20.0)
        client.connect()
        client.call_tool("slow_compute", {"seconds": WORKS_S})
        client.disconnect()
        ledgers = client.recording().ledgers()
    (call,) = [ledger for ledger in ledgers if ledger["operation"] == "call"]
    assert call["server_timing"]["service_ns"] >= WORKS_S * 1e9


HOSTILE = {
    "negative": ({"service_ns": -5}, "malformed"),
    "a-number-of-no-time": ({"service_ns": "soon", "transport_ns": 5}, "malformed"),
    "longer-than-the-call": (
        {"transport_ns": 10, "dispatch_ns": 10, "service_ns": 3_600_000_000_000},
        "longer-than-exchange",
    ),
    "thousands-of-members": ({**{f"x{n}_ns": n for n in range(5000)}, "service_ns": 10**18}, "malformed"),
}


@pytest.mark.parametrize("told, doubt", HOSTILE.values(), ids=HOSTILE)
def test_an_impossible_report_is_marked_and_splits_nothing(told: dict[str, object], doubt: str, tmp_path: Path) -> None:
    def answer(connection: socket.socket) -> None:
        sent = mcp_answer(read_request(connection))
        body = json.loads(sent.partition(b"\r\n\r\n")[2] or b"{}")
        if "content" in body.get("result", {}):
            body["result"]["_meta"] = {"dev.mcpace/timing": told}
            sent = reply(json.dumps(body).encode())
        connection.sendall(sent)

    with tcp_server(answer, read=False) as url:
        ended = run("measure", url, "--trials", 3, "--out", "run.json", folder=tmp_path)
    assert ended.code == 0, ended.stderr
    (call,) = [case for case in Run.load(tmp_path / "run.json").cases if case.operation == "call"]
    assert call.ledger_s is not None and call.ledger_s.server_split is not None
    split = call.ledger_s.server_split
    assert (split.doubt, split.rejected, split.service) == (doubt, 2, 0.0)
    assert split.rest is not None and isclose(split.rest, call.ledger_s.server)
    assert "is not believed" in " ".join(ended.stdout.split())


def test_a_server_that_is_not_asked_tells_nothing(everything: Path, tmp_path: Path) -> None:
    with serving(everything) as url:
        out = tmp_path / "run.json"
        ended = run(
            "measure",
            url,
            "--tool",
            "slow_compute",
            "--args",
            '{"seconds": 0}',
            "--no-server-timing",
            "--out",
            out,
            folder=tmp_path,
        )
    assert ended.code == 0, ended.stderr
    assert all(case.ledger_s and case.ledger_s.server_split is None for case in Run.load(out).cases)
