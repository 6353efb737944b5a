"""Calls whose text is large in both directions, and a listing of 200 tools, over ten connections.

The floor is bare hyper that returns the request's body or, for the listing, mcpace's own reply.
"""

from __future__ import annotations

import http.client
import sys
from contextlib import ExitStack
from pathlib import Path

import call
import figures
import load
from process import Process
from subjects import (
    BUILT,
    LEGACY,
    PROTOCOLS,
    SERVERS,
    TOWER_MCP,
    Subject,
    build_mcpace,
    build_mcpace_python,
    build_protocols,
    build_python_mcp,
    build_tower_mcp,
    script,
    serve,
)

BUILDS = [build_mcpace, build_mcpace_python, build_protocols, build_python_mcp, build_tower_mcp]
SIZES = {"1 KB": 1_000, "100 KB": 100_000, "1 MB": 1_000_000}
TOOLS = 200
CONNECTIONS = 10
LISTINGS = {
    "mcpace-rust": (
        str(BUILT / "mcpace" / "release" / "examples" / "echo"),
        "{address}",
        "json",
        "stateless",
        str(TOOLS),
    ),
    "tower-mcp": (TOWER_MCP, "{port}", "json", "stateless", str(TOOLS)),
    "mcpace-python": (sys.executable, *serve(f"{SERVERS / 'mcpace-python' / 'server.py'}:listing")),
    # With the two tools that it has anyway.
    "python-mcp": (*script("python-mcp"), "{port}", "json", "stateless", str(TOOLS - 2)),
}
COLUMNS = (
    figures.Column("rps", "calls/s"),
    figures.Column("cpu_s", "CPU µs a call", 1e6),
    figures.Column("p50_s", "p50 ms", 1e3),
    figures.Column("p99_s", "p99 ms", 1e3),
)


def measure(chosen: list[Subject], rounds: int, seconds: float, folder: Path) -> list[figures.Row]:
    """A row for each server and size, and for each server with 200 tools."""
    with ExitStack() as started:

        def start(command: tuple[str, ...], variables: tuple[tuple[str, str], ...] = ()) -> Process:
            server = started.enter_context(Process(command, variables))
            server.wait_until_it_listens()
            return server

        floor = str(PROTOCOLS / "floor")
        servers = {"floor": start((floor, "{address}", "echo"))}
        servers |= {subject.name: start(subject.command, subject.environment) for subject in chosen}
        tests = [
            (size, name, server, call.Call(LEGACY, arguments=(("text", "x" * length),)))
            for size, length in SIZES.items()
            for name, server in servers.items()
        ]
        of = call.Call(LEGACY, tool=None)
        lists = {name: start(command) for name, command in LISTINGS.items()}
        replies = {name: listing(server.port, of) for name, server in lists.items()}
        (folder / "listing").write_bytes(replies["mcpace-rust"])
        lists = {"floor": start((floor, "{address}", str(folder / "listing"))), **lists}
        tests += [(f"{TOOLS} tools", name, server, of) for name, server in lists.items()]
        cases = [
            (
                {"case": case, "name": name, "base": "floor"},
                lambda server=server, of=of: once(server, of, seconds, folder),
            )
            for case, name, server, of in tests
        ]
        for _, server, of in (test[1:] for test in tests):
            load.measure(server.port, of, 1, CONNECTIONS, folder)
        return figures.in_turn(rounds, cases)


def once(server: Process, of: call.Call, seconds: float, folder: Path) -> dict[str, float]:
    """The figures of one run."""
    before = server.cpu_s()
    seen = load.measure(server.port, of, seconds, CONNECTIONS, folder)
    cpu_s = (server.cpu_s() - before) / seen.requests
    return {"rps": seen.rps, "cpu_s": cpu_s, "p50_s": seen.p50_s, "p99_s": seen.p99_s}


def listing(port: int, of: call.Call) -> bytes:
    """The reply to `tools/list`, which must have all tools."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/mcp", call.body(of), call.headers(of))
    reply = connection.getresponse().read()
    connection.close()
    if (count := reply.count(b'"inputSchema"')) != TOOLS:
        raise RuntimeError(f"{count} tools are listed, not {TOOLS}: {reply[:300]!r}")
    return reply
