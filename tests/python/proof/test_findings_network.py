"""Problems of the network, at real ones. Each test uses the recorder, and has a sound control."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mcpace import _core
from support.finding_scenes import (
    App,
    Endpoint,
    Receive,
    Recorded,
    Scope,
    Send,
    answer_request,
    findings_by_code,
    patient,
    serve_app,
    start_recorder,
    waiting,
)
from support.http_client import LIMIT_S
from support.network import NEEDS, Road, connect_network, has_namespaces

CALLS = 400
SEGMENTS_TO_A_LOSS = 40
"""A request is two segments. The kernel repairs some losses within milliseconds, which is no stall."""
FAR = Road(delay_s=0.015)
NARROW = Road(bytes_per_s=4e6)
LARGE = 4 << 20
SMALL_BUFFER = 16 << 10


@contextmanager
def record_far_server(app: App, road: Road | None = None, loss_each: int | None = None) -> Iterator[Recorded]:
    """A recorder before a server in the far namespace; each so many segments of the requests are lost."""
    if not has_namespaces():
        pytest.skip(NEEDS)
    with connect_network(road) as network, network.listen() as listener:
        if loss_each is not None:
            network.drop_requests(listener.getsockname()[1], loss_each)
        with serve_app(app, listener=listener) as url, start_recorder(url, body_limit=0) as record:
            yield record


def call_in_turn(record: Recorded, number: int, **arguments: Any) -> _core.Recording:
    """Calls one after another on one connection."""
    wire = record.wire()
    for _ in range(number):
        wire.ask("tools/call", {"name": "work", "arguments": arguments})
    return record.finish()


@pytest.mark.parametrize("loses", [True, False])
@patient
def test_requests_that_the_network_loses_are_named(loses: bool) -> None:
    with record_far_server(Endpoint(waiting), loss_each=SEGMENTS_TO_A_LOSS if loses else None) as record:
        findings = findings_by_code(call_in_turn(record, CALLS, seconds=0.006))
    assert set(findings) == ({"packet-loss"} if loses else set())
    if loses:
        finding = findings["packet-loss"]
        assert finding["context"]["way"] == "to-server"
        assert 0.18 <= finding["context"]["pause_ns"] / 1e9 < 0.4
        assert finding["confidence"]["level"] == "high"


@patient
def test_a_tool_that_pauses_as_long_as_a_lost_segment_loses_none() -> None:
    with record_far_server(Endpoint(waiting)) as record:
        wire = record.wire()
        for at in range(CALLS):
            seconds = 0.206 if at % SEGMENTS_TO_A_LOSS == 9 else 0.006
            wire.ask("tools/call", {"name": "work", "arguments": {"seconds": seconds}})
        findings = findings_by_code(record.finish())
    assert findings == {}


@patient
def test_a_server_at_a_distance_is_named_with_its_round_trip() -> None:
    with record_far_server(Endpoint(waiting), FAR) as record:
        findings = findings_by_code(call_in_turn(record, 20, seconds=0.02))
    assert set(findings) == {"distant-server"}
    round_trip_s = findings["distant-server"]["context"]["round_trip_ns"] / 1e9
    assert 2 * FAR.delay_s <= round_trip_s < 3 * FAR.delay_s


@patient
def test_a_near_server_that_takes_as_long_itself_is_not_distant() -> None:
    with record_far_server(Endpoint(waiting)) as record:
        findings = findings_by_code(call_in_turn(record, 20, seconds=0.02 + 2 * FAR.delay_s))
    assert findings == {}


async def large_results(scope: Scope, receive: Receive, send: Send) -> None:
    """A server whose tool returns four megabytes."""

    async def result(_: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "x" * LARGE}]}

    await answer_request(scope, receive, send, result)


@pytest.mark.parametrize("reads_slowly", [True, False])
@patient
def test_a_client_that_reads_slowly_is_named(reads_slowly: bool) -> None:
    with serve_app(large_results) as url, start_recorder(url, body_limit=0) as record:
        wire = record.wire()
        if reads_slowly:
            wire.connection.sock = connect_with_small_buffer(wire.connection.host, wire.connection.port)
        for _ in range(4):
            reply = wire.post("tools/call", {"name": "work", "arguments": {}})
            read_in_pieces(reply, 0.05 if reads_slowly else 0.0)
        findings = findings_by_code(record.finish())
    assert set(findings) == ({"slow-reader"} if reads_slowly else set())
    if reads_slowly:
        assert findings["slow-reader"]["context"]["largest"] >= LARGE


@patient
def test_large_results_over_a_narrow_road_have_no_slow_reader() -> None:
    with record_far_server(large_results, NARROW) as record:
        assert findings_by_code(call_in_turn(record, 2)) == {}


def connect_with_small_buffer(host: str, port: int) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
    connection.settimeout(LIMIT_S)
    connection.connect((host, port))
    return connection


def read_in_pieces(reply: http.client.HTTPResponse, pause_s: float) -> None:
    """Reads a body in eight pieces; the client works for ``pause_s`` on each."""
    while reply.read(LARGE // 8):
        time.sleep(pause_s)
