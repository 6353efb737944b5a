"""Sound clients at sound servers, each SDK's newest release: no finding may be reported.

Some SDKs cause findings in every combination. These are no false alarms: `Place.truth` lists them, with links to
reports. A few cheap combinations run every day, all of them in `make proof`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from mcpace import MCPServer
from mcpace.lab import targets
from mcpace.lab.clients import measure
from mcpace.lab.clients.plan import Settings
from mcpace.lab.progress import Silent
from mcpace.lab.targets import Target, Tool
from support import echo_server
from support.finding_scenes import patient
from support.python_server import served
from support.release_proofs import by_subject, codes, interpreter, server

FEWEST = 30
"""Healthy combinations that the whole must have."""

CLIENTS = (
    "python@1.30.0",
    "python@2.3.0:legacy",
    "python@2.3.0:auto",
    "typescript@1.32.2",
    "typescript@2.4.0:legacy",
    "typescript@2.4.0:auto",
    "go@1.8.0",
    "mcp-go@1.2.1",
    "fastmcp@4.1.6",
    "langchain@0.3.2:session",
    "rmcp@3.9.0",
)
EVERY_DAY = ("python@1.30.0", "python@2.3.0:auto", "typescript@2.4.0:auto", "go@1.8.0")
OURS = "mcpace-client"

NEW_CONNECTIONS = {"connection-per-request", "stream-not-drained"}
# Clients that take a new connection for each request, by design (rust-sdk #790).
NEVER_REUSE = {"rmcp"}
# Clients that leave a stream of events with its result, unread to its end (python-sdk #3281; mcp-go closes the body).
# FastMCP and LangChain are the official SDK underneath. The Go SDK closes the body at the result (processStream in its
# streamable.go): its connection is lost where the end of the stream comes later, as on a busy machine.
LEAVE_STREAMS = {"python", "fastmcp", "langchain", "mcp-go", "go"}
# Clients that read a JSON reply up to its last brace and no further (mcp-go's json.Decoder, then Close): where its end
# comes apart, in a chunk of its own, and isn't there yet, the connection is lost.
LEAVE_ENDS = {"mcp-go"}
# Servers that send the last chunk by itself: Tomcat's second write, now and then, and mostly while the JVM is cold.
END_APART = {"java@2.1.0"}


# These don't understand each other: the client goes on in 2026-07-28, which this server with sessions doesn't speak.
AT_ODDS = {("mcp-go@1.2.1", "go@1.8.0", "stateful")}


@dataclass(frozen=True)
class Place:
    """A server, how it is reached and in which mode."""

    sdk: str
    mode: Literal["json", "sse", "json-nodelay", "sse-nodelay", "stdio"]
    state: Literal["stateless", "stateful"] = "stateless"
    every_day: bool = False

    def __str__(self) -> str:
        return f"{self.sdk}-{self.mode}-{self.state}"

    def clients(self, clients: tuple[str, ...] = CLIENTS) -> tuple[str, ...]:
        """Those that it can talk to."""
        return tuple(client for client in clients if (client, self.sdk, self.state) not in AT_ODDS)

    @property
    def starts_slowly(self) -> bool:
        return self.mode == "stdio" and self.sdk != "by hand"

    def truth(self, client: str) -> set[str]:
        """Codes of the findings that are correct for this combination."""
        name = client.partition("@")[0]
        # An interpreter and an SDK's imports take a second where the machine has other things to do.
        starts = {"slow-start"} if self.starts_slowly else set()
        leaves = name in LEAVE_STREAMS and self.mode.startswith("sse")
        leaves |= name in LEAVE_ENDS and self.mode.startswith("json") and self.sdk in END_APART
        never = name in NEVER_REUSE and self.mode != "stdio"
        return starts | (NEW_CONNECTIONS if leaves or never else set())


PLACES = (
    Place("mcpace", "json", every_day=True),
    Place("by hand", "stdio", every_day=True),
    Place("python@1.30.0 of every day", "sse", "stateful", every_day=True),
    Place("mcpace", "sse", "stateful"),
    Place("mcpace", "stdio"),
    Place("python@1.30.0", "json", "stateful"),
    Place("python@1.30.0", "stdio", "stateful"),
    Place("python@2.3.0", "json"),
    Place("python@2.3.0", "sse", "stateful"),
    Place("fastmcp@4.1.6", "json", "stateful"),
    Place("fastmcp@4.1.6", "sse"),
    Place("fastmcp@4.1.6", "stdio", "stateful"),
    Place("typescript@1.32.2", "json", "stateful"),
    Place("typescript@2.4.0", "sse"),
    Place("go@1.8.0", "json"),
    Place("go@1.8.0", "sse", "stateful"),
    Place("rmcp@3.9.0", "json-nodelay"),
    Place("rmcp@3.9.0", "sse-nodelay", "stateful"),
    Place("java@2.1.0", "json"),
)

GREET = Tool("greet", {"name": "x"})

OUR_SERVER = """
from mcpace import MCPServer
server = MCPServer("shop")
@server.tool()
def greet(name: str) -> str:
    return f"Hello, {name}!"
"""
# A server over stdio that imports only small or built-in modules.
SERVER_BY_HAND = """
import json, sys
TOOL = {"name": "greet", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
for asked in map(json.loads, sys.stdin):
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        server = {"name": "by hand", "version": "1"}
        revision = asked["params"]["protocolVersion"]
        answer["result"] = {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": server}
    elif asked["method"] == "tools/list":
        answer["result"] = {"tools": [TOOL]}
    elif asked["method"] == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "Hello, x!"}]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"""
FASTMCP_SERVER = """
from fastmcp import FastMCP
server = FastMCP("shop")
@server.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"
server.run(show_banner=False)
"""


@contextmanager
def reached(place: Place, folder: Path) -> Iterator[Target]:
    """The place as a target, while its server runs."""
    match place.sdk, place.mode:
        case "by hand", _:
            (folder / "server.py").write_text(SERVER_BY_HAND)
            yield over_stdio([sys.executable, "-S", "-E", str(folder / "server.py")], GREET)
        case "mcpace", "stdio":
            (folder / "server.py").write_text(OUR_SERVER)
            command = [sys.executable, "-m", "mcpace", "serve", str(folder / "server.py"), "--transport", "stdio"]
            yield over_stdio(command, GREET)
        case "mcpace", mode:
            made: MCPServer[Any] = MCPServer("shop")
            made.tool()(greet)
            options = {"response": mode, "stateless": place.state == "stateless"}
            with served(made, **options) as port:
                yield targets.parse_target(f"http://127.0.0.1:{port}/mcp", tool=GREET)
        case "python@1.30.0 of every day", _:
            with echo_server.over_http() as url:
                yield targets.parse_target(url, tool=Tool("echo", {"text": "x"}))
        case "python@1.30.0", "stdio":
            yield over_stdio(echo_server.over_stdio(), Tool("echo", {"text": "x"}))
        case "fastmcp@4.1.6", "stdio":
            (folder / "server.py").write_text(FASTMCP_SERVER)
            yield over_stdio([interpreter(place.sdk), str(folder / "server.py")], GREET)
        case sdk, mode:
            with server(sdk, mode, place.state) as running:
                yield targets.parse_target(running.url, tool=GREET)


def over_stdio(command: list[str], tool: Tool) -> Target:
    return targets.parse_target(f"stdio:{shlex.join(command)}", tool=tool)


def greet(name: str) -> str:
    return f"Hello, {name}!"


def combinations() -> Iterator[Any]:
    for place in PLACES:
        if place.every_day:
            yield pytest.param(place, place.clients(EVERY_DAY), id=f"{place}-every-day")
        yield pytest.param(place, place.clients(), id=str(place), marks=pytest.mark.proof)


@pytest.mark.network
@pytest.mark.parametrize(("place", "clients"), list(combinations()))
@patient
def test_nothing_is_found_where_nothing_is_wrong(place: Place, clients: tuple[str, ...], tmp_path: Path) -> None:
    with reached(place, tmp_path) as target:
        # Where each trial starts an interpreter and an SDK, three of them say as much.
        trials = 3 if place.starts_slowly else 4
        found = codes(target, *clients, trials=trials)
        found |= by_subject(measure.run(target, Settings(trials=trials), Silent()))
    assert set(found) == {*clients, OURS}
    wrong = {client: codes - place.truth(client) for client, codes in found.items()}
    assert {client: codes for client, codes in wrong.items() if codes} == {}


def test_the_whole_has_thirty_healthy_combinations_and_more() -> None:
    healthy = [(place, client) for place in PLACES for client in (*place.clients(), OURS) if not place.truth(client)]
    assert len(healthy) >= FEWEST
    assert len({place.sdk for place, _ in healthy}) >= 7
    assert {place.mode.partition("-")[0] for place, _ in healthy} == {"json", "sse", "stdio"}
