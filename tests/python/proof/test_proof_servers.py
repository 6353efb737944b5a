"""Servers of today's releases that show a cause as everybody runs them, each beside a control."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support import ports
from support.core_server import LIMIT_S
from support.echo_server import wait_for_port
from support.finding_scenes import Recorded, findings_by_code, patient, start_recorder
from support.release_proofs import server

TESTS = Path(__file__).parents[1]
PINGS = 4

APP = """
from support.finding_scenes import Endpoint
async def quick(_):
    return None
app = Endpoint(quick)
"""


@contextmanager
def uvicorn(folder: Path, *words: str, listener: socket.socket | None = None) -> Iterator[str]:
    """The URL of the real command, serving an app that answers at once."""
    (folder / "app.py").write_text(APP)
    port = ports.free() if listener is None else listener.getsockname()[1]
    place = ["--port", str(port)] if listener is None else ["--fd", str(listener.fileno())]
    command = [sys.executable, "-m", "uvicorn", "app:app", "--log-level", "error", *place, *words]
    fds = () if listener is None else (listener.fileno(),)
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{TESTS}"}
    with subprocess.Popen(command, env=environment, pass_fds=fds) as program:
        try:
            wait_for_port(port, program)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            program.terminate()


def two_kinds(record: Recorded, session: str | None = None) -> None:
    """Calls of two tools and a listing now and then, one after another on one connection."""
    for number in range(12):
        name, arguments = (("greet", {"name": "x"}), ("double", {"n": 2}))[number % 2]
        record.ask(session, "tools/call", {"name": name, "arguments": arguments}).result(LIMIT_S)
        if number % 4 == 0:
            record.ask(session, "tools/list").result(LIMIT_S)


@pytest.mark.parametrize("way", ["--workers", "--fd", "alone"])
@patient
def test_uvicorns_workers_wait_for_acknowledgements(way: str, tmp_path: Path) -> None:
    """asyncio sets TCP_NODELAY only where the listening socket names its protocol: of those that uvicorn makes for its
    workers, and of one that it is handed, it doesn't."""
    words = ("--workers", "2") if way == "--workers" else ()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        with (
            uvicorn(tmp_path, *words, listener=listener if way == "--fd" else None) as url,
            start_recorder(url) as record,
        ):
            two_kinds(record)
            findings = findings_by_code(record.finish())
    assert set(findings) == (set() if way == "alone" else {"delayed-ack"})


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize("mode", ["sse", "sse-nodelay"])
@patient
def test_rmcp_without_nodelay_waits_for_acknowledgements(mode: str) -> None:
    with server("rmcp@3.9.0", mode, "stateless") as running, start_recorder(running.url) as record:
        two_kinds(record)
        findings = findings_by_code(record.finish())
    assert ("delayed-ack" in findings) is (mode == "sse")


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize("release", ["python@1.30.0", "fastmcp@4.1.6"])
@pytest.mark.parametrize("blocks", [True, False])
@patient
def test_a_tool_that_blocks_pythons_event_loop_holds_up_pings(release: str, blocks: bool) -> None:
    """In official 1.x a tool without `async` runs on the loop, in FastMCP 4.x on a thread; `wait` awaits."""
    tool, arguments = ("work", {"us": 300_000}) if blocks else ("wait", {"ms": 300})
    with server(release, "json", "stateless") as running, start_recorder(running.url) as record:
        # Processes answer their first requests late.
        record.ask("two", "tools/list").result(LIMIT_S)
        for _ in range(3):
            call = record.ask("one", "tools/call", {"name": tool, "arguments": arguments})
            wait([call, *(record.ask("two", "ping") for _ in range(PINGS))], timeout=LIMIT_S)
        findings = findings_by_code(record.finish())
    assert ("blocked-event-loop" in findings) is (blocks and release.startswith("python")), findings


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize("release", ["java@2.1.0", "typescript@2.4.0"])
@patient
def test_javas_pool_runs_ten_tools_a_core(release: str) -> None:
    cap = 10 * len(os.sched_getaffinity(0))
    with server(release, "json", "stateless") as running, start_recorder(running.url) as record:
        record.ask(None, "tools/call", {"name": "wait", "arguments": {"ms": 5}}).result(LIMIT_S)
        # Connections for all of them, so that the calls come together.
        wait([record.ask(None, "ping") for _ in range(cap + cap // 2)], timeout=LIMIT_S)
        calls = [
            record.ask(None, "tools/call", {"name": "wait", "arguments": {"ms": 700}}) for _ in range(cap + cap // 2)
        ]
        assert not wait(calls, timeout=LIMIT_S).not_done
        findings = findings_by_code(record.finish())
    assert ("completion-waves" in findings) is release.startswith("java"), findings


TOMCATS_THREADS = 200
# Ten a core, unless it is told: the pool for tools mustn't be what is short.
TOOLS_AT_ONCE = "-Dreactor.schedulers.defaultBoundedElasticSize=400"


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize(("release", "options"), [("java@2.1.0", [TOOLS_AT_ONCE]), ("typescript@2.4.0", [])])
@patient
def test_a_call_in_java_holds_one_of_tomcats_threads(release: str, options: list[str]) -> None:
    def burst(ms: int) -> list[Future[dict[str, Any]]]:
        many = TOMCATS_THREADS + TOMCATS_THREADS // 4
        return [record.ask(None, "tools/call", {"name": "wait", "arguments": {"ms": ms}}) for _ in range(many)]

    with server(release, "json", "stateless", *options) as running, start_recorder(running.url) as record:
        record.threads = ThreadPoolExecutor(2 * TOMCATS_THREADS)
        # Connections and threads for all of them, so that the calls come together.
        assert not wait(burst(100), timeout=LIMIT_S).not_done
        calls = burst(1_500)
        pings = [record.ask(None, "ping") for _ in range(PINGS)]
        assert not wait([*calls, *pings], timeout=LIMIT_S).not_done
        findings = findings_by_code(record.finish())
    assert ("thread-pool-saturation" in findings) is release.startswith("java"), findings
    if options:
        assert findings["thread-pool-saturation"]["context"]["at_a_time"] == TOMCATS_THREADS
