"""Workers that listen (``mcpace load-worker --listen``): both sides prove that they know the token."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mcpace.lab.errors import Unreachable, UsageProblem
from mcpace.lab.load.workers import handshake, tcp_channel
from mcpace.lab.load.workers.handshake import (
    HANDSHAKE_LIMIT_S,
    TOKEN_VARIABLE,
    HandshakeFailure,
    prove_as_driver,
    prove_as_worker,
)
from mcpace.lab.load.workers.places import TcpPlace, WorkerPlace, parse_workers
from mcpace.lab.load.workers.run_workers import run_workers
from support.commands import closed_port, end, line, mcp_answer, read_request, run, start_command, tcp_server
from support.shared_load import Watched, check_totals, plan_for

DONE, USAGE, UNREACHABLE = 0, 2, 3
TOKEN = "a token of the tests"
OTHER = "another token of the tests"


@pytest.fixture
def url() -> Iterator[str]:
    def answer(connection: socket.socket) -> None:
        connection.sendall(mcp_answer(read_request(connection), tool="echo"))

    with tcp_server(answer, read=False) as place:
        yield place


@contextmanager
def listening_worker(folder: Path, token: str = TOKEN) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A worker on loopback, which is the default, and its port."""
    words = ("load-worker", "--listen", "0")
    with start_command(*words, folder=folder, environment={TOKEN_VARIABLE: token}) as process:
        match = re.fullmatch(r"mcpace: waits for its driver on 127\.0\.0\.1 port (\d+)\n", line(process))
        assert match is not None
        yield process, int(match[1])


def place(port: int, token: str = TOKEN) -> WorkerPlace:
    return TcpPlace(f"tcp {port}", False, "127.0.0.1", port, token)


def test_a_worker_serves_the_driver_with_its_token(url: str, tmp_path: Path) -> None:
    with listening_worker(tmp_path) as (process, port):
        with pytest.raises(Unreachable, match=f"127.0.0.1:{port} has another token, or is no worker of mcpace"):
            run_workers(plan_for(url), [place(port, OTHER)], Watched())
        assert line(process) == "mcpace: refused a connection from 127.0.0.1\n"
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: worker\r\n\r\n")
            # The worker may have ended the connection already.
            with suppress(OSError):
                stranger.shutdown(socket.SHUT_WR)
            assert line(process) == "mcpace: refused a connection from 127.0.0.1\n"
        outcome, workers = run_workers(plan_for(url), [place(port)], Watched())
        check_totals(outcome, workers)
        assert (workers[0].state, workers[0].reason) == ("done", None)
        assert end(process).code == DONE


def test_a_program_that_is_no_worker_gets_no_plan() -> None:
    heard: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        connection.sendall(b'{"kind": "challenge", "nonce": "0"}\n')
        heard.append(connection.recv(65_536))
        connection.sendall(json.dumps({"kind": "proof", "proof": json.loads(heard[0])["proof"]}).encode() + b"\n")
        heard.append(connection.recv(65_536))

    with tcp_server(answer, read=False) as address:
        port = int(address.rsplit(":", 1)[1].removesuffix("/mcp"))
        with pytest.raises(Unreachable, match="has another token"):
            run_workers(plan_for("http://127.0.0.1:1/mcp"), [place(port)], Watched())
    assert TOKEN.encode() not in heard[0]
    assert heard[1:] in ([], [b""])


def test_each_proof_is_of_one_side_and_of_both_numbers() -> None:
    near, far = socket.socketpair()
    with near, far:
        near.sendall(b'{"nonce": "1"}\n')
        far.settimeout(5)
        with pytest.raises(HandshakeFailure):
            near.sendall(b'{"proof": ""}\n')
            prove_as_driver(far, TOKEN)
        sent = json.loads(near.recv(4096))
        expected = hmac.new(TOKEN.encode(), f"mcpace driver 1 {sent['nonce']}".encode(), hashlib.sha256).hexdigest()
        assert sent["proof"] == expected
    near, far = socket.socketpair()
    with near, far:
        # The proof of an earlier connection is of no use: the worker's number is another one.
        near.sendall(json.dumps({"nonce": sent["nonce"], "proof": sent["proof"]}).encode() + b"\n")
        with pytest.raises(HandshakeFailure):
            prove_as_worker(far, TOKEN)


@pytest.mark.parametrize(
    "sent", [b"", b"\n", b"[]\n", b'{"proof": 1}\n', b'{"proof": "\\ud800"}\n', b"\xff\n", b"x" * 2000]
)
def test_rubbish_is_no_proof(sent: bytes) -> None:
    near, far = socket.socketpair()
    with near, far:
        near.sendall(sent)
        near.shutdown(socket.SHUT_WR)
        with pytest.raises(HandshakeFailure):
            prove_as_worker(far, TOKEN)


def test_a_slow_stranger_has_one_limit_for_the_whole_message(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(handshake.time, "monotonic", lambda: float(next(seconds)))
    near, far = socket.socketpair()
    with near, far:
        near.sendall(b"x" * 20)
        with pytest.raises(HandshakeFailure):
            prove_as_worker(far, TOKEN)
    assert next(seconds) <= HANDSHAKE_LIMIT_S + 2


def test_a_worker_that_does_not_listen_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_channel, "CONNECT_LIMIT_S", 0.0)
    port = closed_port()
    with pytest.raises(Unreachable, match=f"127.0.0.1:{port} can't be reached: Connection refused"):
        run_workers(plan_for(url), [place(port)], Watched())


def test_a_worker_that_dies_is_counted_up_to_its_last_report(url: str, tmp_path: Path) -> None:
    with listening_worker(tmp_path) as (first, one), listening_worker(tmp_path) as (second, other):

        def kill_second(_: Any) -> None:
            second.kill()

        outcome, workers = run_workers(plan_for(url, duration_s=3.0), [place(one), place(other)], Watched(kill_second))
        check_totals(outcome, workers)
        assert [worker.state for worker in workers] == ["done", "lost"]
        assert workers[1].reason == "it closed the connection"
        assert end(first).code == DONE


def test_a_worker_ends_with_its_driver(tmp_path: Path) -> None:
    calls, has_called = itertools.count(), threading.Event()

    def answer(connection: socket.socket) -> None:
        if next(calls) > 50:
            has_called.set()
        connection.sendall(mcp_answer(read_request(connection), tool="echo"))

    with tcp_server(answer, read=False) as url, listening_worker(tmp_path) as (worker, port):
        words = ["--vus", 1, "--duration", "60s", "--workers", f"tcp:127.0.0.1:{port}", "--tool", "echo"]
        with start_command("load", url, *words, folder=tmp_path, environment={TOKEN_VARIABLE: TOKEN}) as driver:
            assert has_called.wait(60), driver.poll()
            driver.kill()
            driver.wait()
        assert end(worker).code == DONE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "here"], "--listen 'here': write [HOST:]PORT"),
        (["--listen", "0.0.0.0:99999"], "write [HOST:]PORT"),
        (["--listen"], "load-worker takes --listen [HOST:]PORT, or no arguments"),
        (["--connect", "host:1"], "load-worker takes --listen [HOST:]PORT, or no arguments"),
        (["--listen", "0"], f"{TOKEN_VARIABLE} must hold the token of the workers, with at least 16 characters"),
    ],
)
def test_wrong_words_of_a_worker(words: list[str], said: str, tmp_path: Path) -> None:
    ended = run("load-worker", *words, folder=tmp_path, environment={TOKEN_VARIABLE: "short"})
    assert ended.code == USAGE
    assert said in ended.sentence()


def test_an_address_that_cannot_be_bound(tmp_path: Path) -> None:
    ended = run("load-worker", "--listen", "198.51.100.1:7349", folder=tmp_path, environment={TOKEN_VARIABLE: TOKEN})
    assert ended.code == UNREACHABLE
    assert "--listen '198.51.100.1:7349': Cannot assign requested address" in ended.sentence()


def test_places_of_workers_that_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    places = parse_workers(["tcp:host,[::1]:9"])
    assert [(one.host, one.port) for one in places if isinstance(one, TcpPlace)] == [("host", 7349), ("::1", 9)]
    assert TOKEN not in repr(places)
    with pytest.raises(UsageProblem, match="a worker that listens has no users"):
        parse_workers(["tcp:me@host"])
    monkeypatch.delenv(TOKEN_VARIABLE)
    with pytest.raises(UsageProblem, match=f"--workers 'tcp:host': the environment variable {TOKEN_VARIABLE} must"):
        parse_workers(["tcp:host"])
