"""Causes of delayed requests at a server. Each test has a real server behind the recorder, and a sound control."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import Future, as_completed, wait
from pathlib import Path
from typing import Any

import pytest

from mcpace import _core
from support.core_server import LIMIT_S
from support.finding_scenes import (
    Endpoint,
    Recorded,
    blocking,
    findings_by_code,
    in_threads,
    one_of_a_session,
    patient,
    serve_app,
    so_many_at_a_time,
    start_recorder,
    waiting,
)

PINGS = 4

# A server of stdio whose replies wait in its stdout's buffer, or don't.
SERVER = """
import json, sys, time
for asked in map(json.loads, sys.stdin):
    time.sleep(0.008)
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"text": "x" * 150}}
    print(json.dumps(answer), flush=sys.argv[1] == "flushes")
"""
REQUESTS = 150
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def answered(asked: list[Future[dict[str, Any]]]) -> None:
    done = wait(asked, timeout=LIMIT_S)
    assert not done.not_done
    assert all("result" in future.result() for future in asked)


def pinged_meanwhile(record: Recorded, endpoint: Endpoint, session: str | None) -> None:
    """Two calls, one after the other, and pings while each is at the server."""
    for _ in range(2):
        call = record.call("one")
        assert endpoint.arrived.acquire(timeout=LIMIT_S)
        answered([call, *(record.ping(session) for _ in range(PINGS))])


@patient
def test_a_tool_that_blocks_the_loop_holds_up_other_sessions() -> None:
    endpoint = Endpoint(blocking)
    with serve_app(endpoint) as url, start_recorder(url) as record:
        pinged_meanwhile(record, endpoint, "two")
        findings = findings_by_code(record.finish())
    assert set(findings) == {"blocked-event-loop"}
    blocked = findings["blocked-event-loop"]
    assert blocked["confidence"] == {"level": "high", "reason": "nothing-passed"}
    assert blocked["context"]["across_sessions"]
    assert blocked["context"]["without_tool"] >= PINGS


@patient
def test_within_one_session_its_turns_are_named_as_what_would_look_the_same() -> None:
    endpoint = Endpoint(blocking)
    with serve_app(endpoint) as url, start_recorder(url) as record:
        pinged_meanwhile(record, endpoint, "one")
        blocked = findings_by_code(record.finish())["blocked-event-loop"]
    assert blocked["alternatives"] == [{"code": "serial-session", "decided_by": "call-from-second-session"}]


@patient
def test_a_tool_that_waits_holds_up_nobody() -> None:
    endpoint = Endpoint(waiting)
    with serve_app(endpoint) as url, start_recorder(url) as record:
        pinged_meanwhile(record, endpoint, "two")
        answered([record.call("one") for _ in range(8)])
        assert findings_by_code(record.finish()) == {}


@patient
def test_a_session_whose_requests_take_turns_is_told_from_a_server_that_is_blocked() -> None:
    endpoint = Endpoint(waiting, turns=one_of_a_session())
    with serve_app(endpoint) as url, start_recorder(url) as record:
        answered([record.call(session) for _ in range(3) for session in ("one", "two", "three")])
        findings = findings_by_code(record.finish())
    assert set(findings) == {"serial-session"}
    assert findings["serial-session"]["confidence"]["level"] == "high"
    assert findings["serial-session"]["alternatives"] == []


@pytest.mark.parametrize("events", [False, True])
@patient
def test_a_cap_on_the_tools_threads_is_named_by_its_size(events: bool) -> None:
    endpoint = Endpoint(in_threads(4), events=events)
    with serve_app(endpoint) as url, start_recorder(url) as record:
        calls = [record.call() for _ in range(12)]
        # The second four are surely at work.
        ended = as_completed(calls, timeout=LIMIT_S)
        for _ in range(4):
            next(ended)
        answered([*calls, record.ping(), record.ping()])
        findings = findings_by_code(record.finish())
    assert set(findings) == {"completion-waves"}
    assert findings["completion-waves"]["context"]["at_a_time"] == 4
    assert findings["completion-waves"]["alternatives"] == []


@patient
def test_a_pool_for_all_requests_holds_up_pings_too() -> None:
    endpoint = Endpoint(waiting, turns=so_many_at_a_time(3))
    with serve_app(endpoint) as url, start_recorder(url) as record:
        # Long, so that the pings come while a wave is at work however late the calls arrive.
        calls = [record.call(seconds=0.6) for _ in range(9)]
        for _ in calls:
            assert endpoint.arrived.acquire(timeout=LIMIT_S)
        answered([*calls, record.ping(), record.ping()])
        findings = findings_by_code(record.finish())
    assert set(findings) == {"thread-pool-saturation"}
    assert findings["thread-pool-saturation"]["context"]["at_a_time"] == 3


@patient
def test_a_pool_shows_by_heads_that_wait_whatever_each_call_takes() -> None:
    endpoint = Endpoint(waiting, events=True, turns=so_many_at_a_time(3), head_in_turn=True)
    with serve_app(endpoint) as url, start_recorder(url) as record:
        calls = []
        for number in range(9):
            # In this order: in another, two of them may end together.
            calls.append(record.call(seconds=0.2 + 0.07 * number))
            assert endpoint.arrived.acquire(timeout=LIMIT_S)
        answered(calls)
        findings = findings_by_code(record.finish())
    assert set(findings) == {"thread-pool-saturation"}
    assert findings["thread-pool-saturation"]["context"]["at_a_time"] == 3


@pytest.mark.parametrize("ordered", [True, False])
@patient
def test_ready_replies_that_leave_in_order_wait_for_a_slow_one(ordered: bool) -> None:
    endpoint = Endpoint(waiting, ordered=ordered)
    with serve_app(endpoint) as url, start_recorder(url) as record:
        answered([record.call(seconds=0.06)])
        assert endpoint.arrived.acquire(timeout=LIMIT_S)
        slow = record.call(seconds=0.6)
        assert endpoint.arrived.acquire(timeout=LIMIT_S)
        answered([slow, *(record.call(seconds=0.06) for _ in range(3))])
        findings = findings_by_code(record.finish())
    assert set(findings) == ({"head-of-line"} if ordered else set())
    if ordered:
        assert findings["head-of-line"]["context"]["held"] == 3


@pytest.mark.parametrize("flushes", [False, True])
@patient
def test_replies_that_wait_for_a_full_buffer_of_stdout_are_named(tmp_path: Path, flushes: bool) -> None:
    file = tmp_path / "recording"
    record = "import sys; from mcpace import _core; sys.exit(_core.record_stdio(sys.argv[2:], sys.argv[1], 0))"
    server = [sys.executable, "-c", SERVER, "flushes" if flushes else "waits"]
    requests = "".join(
        f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"work"}}}}\n'
        for number in range(REQUESTS)
    )
    done = subprocess.run(
        [sys.executable, "-c", record, str(file), *server],
        input=requests, capture_output=True, text=True, timeout=LIMIT_S, check=True, env=BUFFERED,
    )  # fmt: skip
    assert len(done.stdout.splitlines()) == REQUESTS
    findings = findings_by_code(_core.Recording.load(str(file)))
    assert ("head-of-line" in findings) is not flushes
    if not flushes:
        assert findings["head-of-line"]["context"]["released_with"] == "full-buffer"
