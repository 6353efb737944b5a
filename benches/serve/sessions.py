"""Memory of idle stateful sessions: opens many sessions over a few connections and measures the idle server."""

from __future__ import annotations

import json
import socket
from dataclasses import asdict, dataclass
from typing import BinaryIO

import figures
from process import Process
from subjects import LEGACY, stateful_echo

CONNECTIONS = 8
WARM_UP = 1_000
"""Number of sessions opened before memory is first measured, so that the server's own start is not counted."""


@dataclass(frozen=True)
class SessionMemory:
    """Memory of idle sessions."""

    sessions: int
    rss_before_bytes: int
    rss_after_bytes: int
    bytes_per_session: float


def measure(sessions: int) -> dict[str, float]:
    """Opens the sessions on a fresh server, each initialized as a client does it, then closes the connections."""
    with Process(stateful_echo().command) as server:
        server.wait_until_it_listens()
        open_sessions(server.port, WARM_UP)
        before = server.rss_bytes()
        opened = open_sessions(server.port, sessions)
        if len(opened) != sessions:
            raise RuntimeError(f"asked for {sessions} sessions, got {len(opened)} different ones")
        after = server.rss_bytes()
        check_alive(server.port, opened)
    return asdict(SessionMemory(sessions, before, after, (after - before) / sessions))


def checks(found: dict[str, float]) -> dict[str, object]:
    """The target of a session's memory."""
    return {"bytes an idle session": figures.check(found["bytes_per_session"], 6144, at_most=True)}


def open_sessions(port: int, count: int) -> set[str]:
    """Opens sessions one after another on each connection; returns their ids."""
    opened = set()
    for number in range(CONNECTIONS):
        with (
            socket.create_connection(("127.0.0.1", port), timeout=20) as connection,
            connection.makefile("rb") as replies,
        ):
            for _ in range(number, count, CONNECTIONS):
                connection.sendall(INITIALIZE)
                status, session = read(replies)
                if status != 200 or session is None:
                    raise RuntimeError(f"initialize was answered {status}, session {session}")
                connection.sendall(
                    request(INITIALIZED, f"Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: {LEGACY}\r\n")
                )
                status, _ = read(replies)
                if status != 202:
                    raise RuntimeError(f"notifications/initialized was answered {status}")
                opened.add(session)
    return opened


def check_alive(port: int, opened: set[str]) -> None:
    """Refuses a server that has dropped sessions."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection, connection.makefile("rb") as replies:
        for session in opened:
            connection.sendall(request(PING, f"Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: {LEGACY}\r\n"))
            status, _ = read(replies)
            if status != 200:
                raise RuntimeError(f"a ping in an idle session was answered {status}")


def read(replies: BinaryIO) -> tuple[int, str | None]:
    """Reads one reply, with a length or in chunks; returns its status and session."""
    status, session = int(replies.readline().split()[1]), None
    length: int | None = 0
    while (line := replies.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode().partition(":")
        if name.lower() == "mcp-session-id":
            session = value.strip()
        elif name.lower() == "content-length":
            length = int(value)
        elif name.lower() == "transfer-encoding":
            length = None
    if length is None:
        while chunk := int(replies.readline(), 16):
            replies.read(chunk + 2)
        replies.readline()
    else:
        replies.read(length)
    return status, session


def request(message: dict[str, object], more: str = "") -> bytes:
    """A POST of the message."""
    body = json.dumps(message)
    head = (
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    )
    return (head + body).encode()


PING: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
INITIALIZED: dict[str, object] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
INITIALIZE = request(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": LEGACY,
            "capabilities": {"roots": {"listChanged": True}, "sampling": {}},
            "clientInfo": {"name": "idle-client", "version": "1.0.0"},
        },
    }
)
