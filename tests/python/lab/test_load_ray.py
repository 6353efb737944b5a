"""Loads with the actors of a real Ray cluster as workers."""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.commands import Ended, closed_port, mcp_answer, read_request, tcp_server
from support.ray_cluster import RayCluster, ray_cluster, variables

pytestmark = [pytest.mark.scale, pytest.mark.network]

DONE, UNREACHABLE = 0, 3
LIMIT_S = 150.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster(processors=3) as running:
        yield running


@contextmanager
def load(cluster: RayCluster, url: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    command = [str(cluster.python), "-m", "mcpace", "load", url, *map(str, words), "--warm-up", "0s", "--tool", "echo"]
    process = subprocess.Popen(
        command, env=variables(), cwd=cluster.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            process.kill()


def end(process: subprocess.Popen[str]) -> Ended:
    stdout, stderr = process.communicate(timeout=LIMIT_S)
    assert "Traceback" not in stderr, stderr
    return Ended(process.returncode, stdout, stderr)


@contextmanager
def counting_server(enough: int) -> Iterator[tuple[str, threading.Event]]:
    """A server, and the event that it has answered enough requests."""
    requests, has_enough = itertools.count(1), threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.sendall(mcp_answer(read_request(connection), tool="echo"))
        if next(requests) >= enough:
            has_enough.set()

    with tcp_server(answer, read=False) as url:
        yield url, has_enough


def await_requests(process: subprocess.Popen[str], has_enough: threading.Event) -> None:
    """Waits until the server has answered enough requests. Fails with the output of a load that ends before."""
    for _ in range(round(LIMIT_S)):
        if has_enough.wait(1.0):
            return
        assert process.poll() is None, end(process)
    raise AssertionError("the load was not begun")


def case_of(ended: Ended) -> dict[str, Any]:
    assert ended.stdout.startswith("{"), ended
    [case] = json.loads(ended.stdout)["cases"]
    return dict(case)


def test_actors_make_the_load_of_one_process(cluster: RayCluster) -> None:
    words = ["--vus", 5, "--max-calls", 301, "--duration", "60s", "--workers", f"ray:2@{cluster.address}", "--json"]
    with counting_server(1) as (url, _), load(cluster, url, *words) as process:
        ended = end(process)
    assert ended.code == DONE, ended.stderr
    case = case_of(ended)
    assert (case["by_tool"]["echo"]["count"], case["by_tool"]["echo"]["ok"]) == (301, 301)
    workers = case["load"]["workers"]
    assert [(one["place"], one["state"], one["missing_share"]) for one in workers] == [
        ("ray 1", "done", 0.0), ("ray 2", "done", 0.0),
    ]  # fmt: skip
    assert sorted(one["calls"] for one in workers) == [150, 151]
    # All processes of this machine have one clock.
    assert all(abs(one["time_offset_s"]) <= one["uncertainty_s"] for one in workers)
    assert ended.stderr == ""


def test_an_actor_that_dies_is_counted_up_to_its_last_report(cluster: RayCluster) -> None:
    words = ["--vus", 2, "--think", "5ms", "--duration", "20s", "--workers", f"ray:2@{cluster.address}", "--json"]
    # Two users make at most 400 calls a second, so that the first second was reported.
    with counting_server(800) as (url, has_enough), load(cluster, url, *words) as process:
        await_requests(process, has_enough)
        os.kill(min(cluster.actors()), signal.SIGKILL)
        ended = end(process)
    assert ended.code == UNREACHABLE, ended.stderr
    case = case_of(ended)
    states = {one["state"]: one for one in case["load"]["workers"]}
    assert set(states) == {"done", "lost"}
    assert 0 < states["lost"]["missing_share"] < 0.5
    assert "died" in states["lost"]["reason"]
    assert sum(one["calls"] for one in case["load"]["workers"]) == case["by_tool"]["echo"]["count"]


def test_actors_end_with_their_driver(cluster: RayCluster) -> None:
    words = ["--vus", 2, "--think", "5ms", "--duration", "60s", "--workers", f"ray:2@{cluster.address}"]
    with counting_server(200) as (url, has_enough), load(cluster, url, *words) as process:
        await_requests(process, has_enough)
        actors = [os.pidfd_open(pid) for pid in cluster.actors()]
        process.kill()
        process.wait()
    assert len(actors) == 2
    for actor in actors:
        assert select.select([actor], [], [], 30)[0], "an actor goes on without its driver"
        os.close(actor)


def test_a_cluster_that_is_too_small_leaves_a_part_missing(cluster: RayCluster) -> None:
    words = ["--vus", 4, "--duration", "1s", "--threads", 2, "--workers", f"ray:2@{cluster.address}", "--json"]
    with counting_server(1) as (url, _), load(cluster, url, *words) as process:
        ended = end(process)
    assert ended.code == UNREACHABLE, ended.stderr
    near, far = sorted(case_of(ended)["load"]["workers"], key=lambda one: str(one["state"]))
    assert (near["state"], far["state"], far["missing_share"]) == ("done", "refused", 0.5)
    assert far["reason"] == (
        "the Ray cluster had no place for it within 60 s: a worker needs 2 CPU (--threads), and the cluster has 3, of "
        "which 1 are free"
    )


def test_an_address_without_a_cluster(cluster: RayCluster) -> None:
    address = f"127.0.0.1:{closed_port()}"
    with counting_server(1) as (url, _), load(cluster, url, "--workers", f"ray:1@{address}") as process:
        ended = end(process)
    assert ended.code == UNREACHABLE
    assert ended.stderr.splitlines()[-1] == (
        f"mcpace: no worker could begin the load: ray 1: there is no Ray cluster at {address}: [Errno 111] Connection "
        "refused"
    )
