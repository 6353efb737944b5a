"""The connections of other processes, by the kernel's account."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpace import _core
from support import ports

PERIOD_S = 0.004
LIMIT_S = 30.0

CLIENT = """
import socket, sys
place, refused, path, short = sys.argv[1:]
here = ("127.0.0.1", int(place))

def ask(connection):
    connection.sendall(b"ask")
    return connection.recv(100)

def step():
    print(flush=True)
    sys.stdin.readline()

step()
kept = socket.create_connection(here)
unix = socket.socket(socket.AF_UNIX)
unix.connect(path)
own = socket.create_server(("127.0.0.1", 0))
visitor = socket.create_connection(own.getsockname())
visited = own.accept()[0]
step()
ask(kept)
step()
for _ in range(int(short)):
    with socket.create_connection(here) as connection:
        ask(connection)
step()
try:
    socket.create_connection(("127.0.0.1", int(refused)))
except ConnectionRefusedError:
    pass
kept.close()
step()
"""

MANY = """
import socket, sys
kept = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(100)]
for _ in range(2):
    print(flush=True)
    sys.stdin.readline()
    for connection in kept:
        connection.sendall(b"ask")
        connection.recv(100)
print(flush=True)
sys.stdin.readline()
"""
"""Asks twice on each of many connections."""
SHIFTED = """
import fcntl, os, resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
kept = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
fcntl.fcntl(kept, fcntl.F_DUPFD, 1800)
kept.close()

def step():
    print(flush=True)
    sys.stdin.readline()

step()
others = [os.open("/dev/null", os.O_RDONLY) for _ in range(1500)]
step()
for other in others:
    os.close(other)
step()
os.close(1800)
step()
"""
"""Opens so many files that the descriptor of its connection is beyond those that are read, and closes them again."""


@pytest.fixture
def answering() -> Iterator[int]:
    """Port of a server that answers what it is asked."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection:
            while connection.recv(100):
                connection.sendall(b"answer")

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def watched(answering: int, folder: Path, *, short: int = 0, ignored: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The events about a program that makes connections, step by step."""
    path = folder / "socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    accepted = []
    threading.Thread(target=lambda: accepted.append(listener.accept()), daemon=True).start()
    with listener:
        arguments = [str(answering), str(ports.free()), str(path), str(short)]
        return watched_program(CLIENT, arguments, steps=5, ignored=ignored)


def watched_program(
    program_text: str, arguments: list[str], *, steps: int, ignored: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """The events about a Python program that waits for a line after each of ``steps`` steps."""
    command = [sys.executable, "-c", program_text, *arguments]
    watcher = _core.SocketWatcher(os.getpid(), period_s=PERIOD_S, ignored=list(ignored))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdin is not None
        for _ in range(steps):
            program.stdout.readline()
            # The watcher finds new processes and looks at connections in this time.
            threading.Event().wait(0.25)
            program.stdin.write("\n")
            program.stdin.flush()
        assert program.wait(LIMIT_S) == 0
    return [dict(event, **event["event"]) for event in watcher.stop().events()]


def kinds(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [dict(event[kind], at=event["at"]) for event in events if kind in event]


def test_connections_that_a_process_makes_are_told_with_their_data_and_their_ends(
    answering: int, tmp_path: Path
) -> None:
    events = watched(answering, tmp_path)
    opened = {one["address"]: one for one in kinds(events, "socket-opened")}
    assert set(opened) >= {f"127.0.0.1:{answering}", str(tmp_path / "socket")}
    # A connection that the program accepts is none that it makes.
    assert len(opened) <= 4
    kept = opened[f"127.0.0.1:{answering}"]
    assert kept["pid"] is not None
    assert 0 < kept["at"] - kept["absent"] < 1_000_000_000
    traffic = [one for one in kinds(events, "socket-traffic") if one["socket"] == kept["socket"]]
    assert (traffic[-1]["traffic"]["sent"], traffic[-1]["traffic"]["received"]) == (3, 6)
    [closed] = [one for one in kinds(events, "socket-closed") if one["socket"] == kept["socket"]]
    assert (closed["established"], closed["by"]) == (True, "program")
    assert closed["info"]["min_rtt"] > 0
    assert kinds(events, "source-missing") == []


def test_connections_that_begin_and_end_between_two_looks_are_counted(answering: int, tmp_path: Path) -> None:
    events = watched(answering, tmp_path, short=200)
    here = [one for one in kinds(events, "socket-opened") if one["address"] == f"127.0.0.1:{answering}"]
    assert len(here) == 201
    ended = {one["socket"] for one in kinds(events, "socket-closed")}
    assert {one["socket"] for one in here} == ended & {one["socket"] for one in here}
    assert sum("pid" not in one for one in here) > 100


def test_the_data_of_all_connections_is_read_where_there_are_many(answering: int) -> None:
    events = watched_program(MANY, [str(answering)], steps=3)
    opened = {one["socket"] for one in kinds(events, "socket-opened")}
    received = {one["socket"]: one["traffic"]["received"] for one in kinds(events, "socket-traffic")}
    assert len(opened) == 100
    assert received == dict.fromkeys(opened, 12)
    [missing] = kinds(events, "source-missing")
    assert "more than 64 connections" in missing["reason"]


def test_a_connection_whose_descriptor_is_not_read_is_not_taken_for_closed(answering: int) -> None:
    events = watched_program(SHIFTED, [str(answering)], steps=4)
    [opened] = kinds(events, "socket-opened")
    [closed] = kinds(events, "socket-closed")
    # Three steps of the program lie between.
    assert closed["at"] - opened["at"] > 600_000_000
    assert closed["by"] == "program"
    [missing] = kinds(events, "source-missing")
    assert "more than 1024 descriptors" in missing["reason"]


def test_addresses_that_are_ignored_are_left_out(answering: int, tmp_path: Path) -> None:
    address = f"127.0.0.1:{answering}"
    events = watched(answering, tmp_path, short=5, ignored=(address,))
    assert address not in {one["address"] for one in kinds(events, "socket-opened")}


def test_a_watcher_stops_once_and_refuses_what_is_no_address() -> None:
    watcher = _core.SocketWatcher(os.getpid(), period_s=PERIOD_S)
    watcher.stop()
    with pytest.raises(_core.UsageProblem):
        watcher.stop()
    with pytest.raises(_core.UsageProblem):
        _core.SocketWatcher(os.getpid(), period_s=PERIOD_S, ignored=["localhost"])
