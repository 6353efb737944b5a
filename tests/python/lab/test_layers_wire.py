"""The client of the layers' worker, with servers that frame replies in all valid ways, and wrongly."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.adoption import ROOT
from support.commands import mcp_answer, read_request, tcp_server

sys.path.append(str(ROOT / "python" / "mcpace" / "lab" / "layers" / "worker"))

from mcpace_layers.problem import Problem, Unmeasured
from mcpace_layers.wire import Wire

Framing = Callable[[bytes], list[bytes]]
"""A body as the pieces that the server writes."""


def by_length(body: bytes) -> list[bytes]:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    whole = head + body
    return [whole[:20], whole[20:-3], whole[-3:]]


def by_chunks(body: bytes) -> list[bytes]:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    event = b"event: message\r\ndata: " + body + b"\r\n\r\n"
    middle = len(event) // 2
    parts = [b"%x;x=y\r\n%s\r\n" % (len(part), part) for part in (event[:middle], event[middle:])]
    return [head + parts[0][:5], parts[0][5:], parts[1], b"0\r\n\r\n"]


def by_treacherous_chunks(body: bytes) -> list[bytes]:
    """A chunk ends like the last chunk, and the last chunk has a trailer."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    hint, event = b"retry: 3000\r\n", b"data: " + body + b"\r\n\r\n"
    parts = [b"%x\r\n%s\r\n" % (len(part), part) for part in (hint, event)]
    return [head + parts[0], parts[1], b"0\r\n", b"x-took: 1\r\n\r\n"]


@contextmanager
def serving(frame: Framing, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Iterator[str]:
    """Runs a small server whose replies to calls are changed and framed."""

    def answer(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            request = read_request(connection)
            plain = mcp_answer(request)
            body = plain.partition(b"\r\n\r\n")[2]
            if b'"tools/call"' not in request:
                connection.sendall(plain)
                continue
            message = json.loads(body)
            change(message)
            for piece in frame(json.dumps(message).encode()):
                connection.sendall(piece)

    with tcp_server(answer, read=False) as url:
        yield url


@pytest.mark.parametrize("frame", [by_length, by_chunks, by_treacherous_chunks])
def test_replies_are_read_to_their_end_whatever_the_framing(frame: Framing) -> None:
    with serving(frame) as url:
        wire = Wire(url, "greet", {})
        for _ in range(3):
            wire.check(wire.call())
        with pytest.raises(Unmeasured, match="tells no layers"):
            wire.timed_call()


def test_what_the_server_tells_is_its_dispatch_and_service() -> None:
    def tell(message: dict[str, Any]) -> None:
        told = {"transport_ns": 100, "dispatch_ns": 20, "service_ns": 3}
        message["result"]["_meta"] = {"dev.mcpace/timing": told}

    with serving(by_chunks, tell) as url:
        assert Wire(url, "greet", {}).timed_call() == 23


def _failed(message: dict[str, Any]) -> None:
    message["result"]["isError"] = True


def _refused(message: dict[str, Any]) -> None:
    del message["result"]
    message["error"] = {"code": -32602, "message": "no such tool"}


def _misaddressed(message: dict[str, Any]) -> None:
    message["id"] = 99


@pytest.mark.parametrize(
    "change, said", [(_failed, "the tool 'greet' failed"), (_refused, "no such tool"), (_misaddressed, "is no result")]
)
def test_a_reply_that_is_no_good_result_is_a_problem(change: Callable[[dict[str, Any]], None], said: str) -> None:
    with serving(by_length, change) as url:
        wire = Wire(url, "greet", {})
        with pytest.raises(Problem, match=said):
            wire.check(wire.call())


@pytest.mark.parametrize(
    "pieces, said",
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"], "no sensible length"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"], "no sensible length"),
        ([b"HTTP/1.1 200 OK\r\n\r\n{}"], "keeps none alive"),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"], "no HTTP"),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-5\r\n{}\r\n0\r\n\r\n"], "no HTTP"),
        ([b"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\nbang"], "HTTP 500: bang"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbang"], "no message"),
    ],
)
def test_what_is_no_reply_is_a_problem(pieces: list[bytes], said: str) -> None:
    with serving(lambda _: pieces) as url:
        wire = Wire(url, "greet", {})
        with pytest.raises(Problem, match=said):
            wire.check(wire.call())


def test_an_idle_connection_that_the_server_closed_is_made_anew() -> None:
    served, gone = [], threading.Event()

    def answer(connection: socket.socket) -> None:
        served.append(connection)
        for _ in range(3 if len(served) == 1 else 9):
            connection.sendall(mcp_answer(read_request(connection)))
        connection.shutdown(socket.SHUT_RDWR)
        gone.set()

    with tcp_server(answer, read=False) as url:
        wire = Wire(url, "greet", {})
        wire.check(wire.call())
        assert gone.wait(30)
        wire.renew()
        wire.check(wire.call())
        wire.renew()
        assert len(served) == 2


def test_a_server_that_moves_its_endpoint_is_followed_once() -> None:
    asked = []

    def answer(connection: socket.socket) -> None:
        while True:
            request = read_request(connection)
            path = request.split(b" ")[1]
            asked.append(path)
            moved = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /mcp/\r\nContent-Length: 0\r\n\r\n"
            connection.sendall(moved if path == b"/mcp" else mcp_answer(request))

    with tcp_server(answer, read=False) as url:
        wire = Wire(url, "greet", {})
        wire.check(wire.call())
    assert asked == [b"/mcp", b"/mcp/", b"/mcp/", b"/mcp/"]
