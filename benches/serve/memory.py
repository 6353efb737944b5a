"""Memory of open connections and of idle event streams, each of a connection and a session of its own."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from typing import BinaryIO

import call
import figures
from process import Process
from sessions import INITIALIZE, INITIALIZED, read, request
from subjects import (
    BUILT,
    LEGACY,
    SERVERS,
    TOWER_MCP,
    Subject,
    build_mcpace,
    build_mcpace_python,
    build_python_mcp,
    build_rmcp,
    build_tower_mcp,
    script,
    stateful_echo,
)

CONNECTIONS = (1, 1_000, 10_000)
STREAMS = 10_000
BUILDS = [build_mcpace, build_mcpace_python, build_python_mcp, build_rmcp, build_tower_mcp]
STATEFUL = {
    "mcpace-rust": stateful_echo().command,
    "mcpace-python": (
        *(sys.executable, "-m", "mcpace", "serve", f"{SERVERS / 'mcpace-python' / 'server.py'}:sync"),
        *("--port", "{port}", "--log-level", "warning"),
    ),
    "rmcp": (str(BUILT / "rmcp" / "release" / "rmcp-echo"), "{port}", "json", "stateful"),
    "tower-mcp": (TOWER_MCP, "{port}", "json", "stateful", "1"),
    "python-mcp": (*script("python-mcp"), "{port}", "json", "stateful", "0"),
}
COLUMNS = (
    figures.Column("rss_bytes", "RSS MB", 1e-6),
    figures.Column("each_bytes", "KB each", 1e-3),
)


def measure(chosen: list[Subject]) -> list[figures.Row]:
    """A row for each server and number of connections, and for each server that keeps streams."""
    rows = []
    for subject in chosen:
        print(f"connections: {subject.label}", file=sys.stderr)
        for case, values in connections(subject).items():
            rows.append({"case": case, "name": subject.name, "base": "floor", "rounds": values})
    rows.sort(key=lambda row: int(row["case"].split()[0].replace(",", "")))
    for name, command in STATEFUL.items():
        print(f"streams: {name}", file=sys.stderr)
        rows.append({"case": f"{STREAMS:,} idle streams", "name": name, "base": "", "rounds": streams(command)})
    return rows


def connections(subject: Subject) -> dict[str, dict[str, list[float]]]:
    """Memory while connections are open that made one call each; bytes of each beside the first.

    Some servers limit their connections: the numbers that they don't reach are left out.
    """
    of = call.Call(subject.revisions[0], events_only=subject.events_only)
    found: dict[str, dict[str, list[float]]] = {}
    with Process(subject.command, subject.environment) as server, ExitStack() as opened:
        server.wait_until_it_listens()
        first, count, made = 0, 0, call.raw(of, server.port)
        for number in CONNECTIONS:
            while count < number:
                connection, replies = connect(server.port, opened)
                connection.sendall(made)
                try:
                    status, _ = read(replies)
                except TimeoutError:
                    print(f"{subject.label} left connection {count + 1} without an answer", file=sys.stderr)
                    return found
                if status != 200:
                    raise RuntimeError(f"{subject.label}: connection {count} was answered {status}")
                count += 1
            rss = server.rss_bytes()
            first = first or rss
            values = {"rss_bytes": [float(rss)]}
            if number > 1:
                values["each_bytes"] = [(rss - first) / (number - 1)]
            found[f"{number:,} connection{'s' * (number > 1)}"] = values
    return found


def streams(command: tuple[str, ...]) -> dict[str, list[float]]:
    """Memory while sessions are open, each with a GET stream on its connection; bytes of each beside the first."""
    with Process(command) as server, ExitStack() as opened:
        server.wait_until_it_listens()
        first, host = 0, f"localhost:{server.port}".encode()
        for _ in range(STREAMS):
            connection, replies = connect(server.port, opened)
            connection.sendall(INITIALIZE.replace(b"localhost", host, 1))
            status, session = read(replies)
            if status != 200 or session is None:
                raise RuntimeError(f"initialize was answered {status}, session {session}")
            fields = f"Host: {host.decode()}\r\nMcp-Session-Id: {session}\r\nMCP-Protocol-Version: {LEGACY}\r\n"
            connection.sendall(request(INITIALIZED, fields).replace(b"Host: localhost\r\n", b"", 1))
            if (status := read(replies)[0]) != 202:
                raise RuntimeError(f"notifications/initialized was answered {status}")
            connection.sendall(f"GET /mcp HTTP/1.1\r\nAccept: text/event-stream\r\n{fields}\r\n".encode())
            if b" 200 " not in (line := replies.readline()):
                raise RuntimeError(f"GET was answered {line!r}")
            first = first or server.rss_bytes()
        rss = server.rss_bytes()
    return {"rss_bytes": [float(rss)], "each_bytes": [(rss - first) / (STREAMS - 1)]}


def connect(port: int, opened: ExitStack) -> tuple[socket.socket, BinaryIO]:
    """A connection that stays open until the end of the stack."""
    connection = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
    return connection, opened.enter_context(connection.makefile("rb"))
