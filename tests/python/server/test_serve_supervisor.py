"""The parent of worker processes, with a stand-in for the worker: started, replaced, given up, never left behind."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpace.server.running.child import describe_exit
from mcpace.server.running.restarts import FIRST_DELAY_S, GIVE_UP_AFTER, LONGEST_DELAY_S, WELL_AFTER_S, Restarts
from support.commands import LIMIT_S

# Prints its order and its process id. The order also names its behaviour.
WORKER = """
import json, os, signal, socket, sys, time
from mcpace.server.running import lifeline
parent = socket.socket(fileno=int(sys.argv[1]))
lifeline.tie(int(sys.argv[2]))
order = parent.makefile().readline().split()
number, ways = int(order[0]), order[1:]
with open(f"starts-{number}", "a") as file:
    file.write("x")
starts = os.path.getsize(f"starts-{number}")
way = ways[min(starts, len(ways)) - 1]
def say(text):
    sys.stderr.write(f"w{number}: {text}\\n")  # one write, because other processes write to the stream, too
if way == "ignores":
    signal.signal(signal.SIGTERM, lambda *_: say("asked to end"))
elif way == "stops":
    pass
else:
    signal.signal(signal.SIGTERM, lambda *_: (say("asked to end"), sys.exit(0)))
if way == "fails":
    parent.sendall(b'{"serves": false, "exit_code": 3}\\n')
    sys.exit(3)
if way == "breaks":
    sys.exit(7)
parent.sendall(json.dumps({"serves": True, "number": number}).encode() + b"\\n")
say(f"serves as {os.getpid()}")
if way == "stuck":
    # Holds the interpreter's lock forever, so no handler and no other thread of Python runs.
    import ctypes
    ctypes.PyDLL(None).pause()
while True:
    signal.pause()
"""

PARENT = """
import sys
from mcpace.server.running.child import Child
from mcpace.server.running.messages import say
from mcpace.server.running.supervisor import WorkerPlan, supervise
workers, grace_s, *ways = sys.argv[1:]
def start(number):
    mine = ways[min(number, len(ways)) - 1].replace(",", " ")
    return Child(number, [sys.executable, "worker.py"], f"{number} {mine}")
plan = WorkerPlan(start, int(workers), float(grace_s), lambda facts: say(f"all serve, as {facts}"))
sys.exit(supervise(plan))
"""


class Parent:
    """The supervisor as a process, with the output of it and its workers."""

    def __init__(self, folder: Path, *words: object) -> None:
        (folder / "worker.py").write_text(WORKER)
        (folder / "parent.py").write_text(PARENT)
        command = [sys.executable, "parent.py", *map(str, words)]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, start_new_session=True)
        self.said: list[str] = []
        self._pending: list[str] = []
        self._rest = b""

    def until(self, pattern: str) -> re.Match[str]:
        """Waits for the first matching line and removes it. Lines of several processes come in any order."""
        assert self.process.stderr is not None
        while True:
            for position, line in enumerate(self._pending):
                if match := re.search(pattern, line):
                    del self._pending[position]
                    return match
            ready, _, _ = select.select([self.process.stderr], [], [], LIMIT_S)
            part = os.read(self.process.stderr.fileno(), 65_536) if ready else b""
            assert part, f"{pattern!r} was never said, but {self.said}"
            self._take(part)

    def ended(self) -> int:
        """The exit code, after the supervisor and all its workers have ended, which share its stderr."""
        _, rest = self.process.communicate(timeout=LIMIT_S)
        self._take(rest)
        return self.process.returncode

    def _take(self, part: bytes) -> None:
        *lines, self._rest = (self._rest + part).split(b"\n")
        self.said += [line.decode() for line in lines]
        self._pending += [line.decode() for line in lines]


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Callable[..., Parent]]:
    """Starts supervisors with a number of workers, a grace time, and the behaviour of each worker at each start."""
    parents: list[Parent] = []

    def start(*words: object) -> Parent:
        parents.append(Parent(tmp_path, *words))
        return parents[-1]

    yield start
    for one in parents:
        with closing_whole(one.process):
            pass


@contextmanager
def closing_whole(process: subprocess.Popen[bytes]) -> Iterator[None]:
    yield
    if process.poll() is None:
        process.kill()
        process.wait(LIMIT_S)
    if process.stderr:
        process.stderr.close()


def pids(parent: Parent, count: int) -> dict[int, int]:
    """Waits until `count` workers serve. Returns their process ids by number."""
    found = {}
    for _ in range(count):
        match = parent.until(r"w(\d+): serves as (\d+)")
        found[int(match[1])] = int(match[2])
    return found


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_all_workers_serve_before_that_is_said(parent: Callable[..., Parent]) -> None:
    one = parent(3, 5, "serves")
    assert set(pids(one, 3)) == {1, 2, 3}
    one.until(r"all serve, as \{'number': 1\}")
    one.process.send_signal(signal.SIGTERM)
    assert one.ended() == 0
    assert sum("asked to end" in line for line in one.said) == 3


def test_ctrl_c_ends_all_in_order_and_says_how_to_hurry(parent: Callable[..., Parent]) -> None:
    one = parent(2, 5, "serves")
    workers = pids(one, 2)
    one.until("all serve")
    one.process.send_signal(signal.SIGINT)
    assert one.ended() == 130
    assert any("stopping: calls in flight have up to 5 s; Ctrl-C again ends at once" in line for line in one.said)
    assert all(gone(pid) for pid in workers.values())


def test_a_second_signal_ends_at_once(parent: Callable[..., Parent]) -> None:
    one = parent(1, 1000, "ignores")
    one.until("all serve")
    one.process.send_signal(signal.SIGTERM)
    one.until("w1: asked to end")
    one.process.send_signal(signal.SIGTERM)
    assert one.ended() == 130


def test_a_worker_that_does_not_end_in_time_is_killed(parent: Callable[..., Parent]) -> None:
    one = parent(1, 0, "ignores")
    [worker] = pids(one, 1).values()
    one.until("all serve")
    one.process.send_signal(signal.SIGTERM)
    assert one.ended() == 0
    assert gone(worker)


def test_a_worker_that_was_killed_is_replaced_and_the_others_stay(parent: Callable[..., Parent]) -> None:
    one = parent(2, 5, "serves")
    before = pids(one, 2)
    one.until("all serve")
    os.kill(before[2], signal.SIGKILL)
    one.until(rf"worker 2 \(pid {before[2]}\) was ended by SIGKILL; its sessions are lost, another takes its place$")
    [(number, pid)] = pids(one, 1).items()
    assert number == 2
    assert pid != before[2]
    one.until(rf"worker 2 \(pid {pid}\) serves again")
    assert not gone(before[1])
    # The worker ended soon after its start, and so did the one before it, so the next start is delayed.
    os.kill(pid, signal.SIGKILL)
    one.until(rf"worker 2 \(pid {pid}\) was ended by SIGKILL; .* takes its place in 0.5 s$")
    one.process.send_signal(signal.SIGTERM)
    assert one.ended() == 0


def test_a_first_worker_that_cannot_start_ends_it_at_once(parent: Callable[..., Parent], tmp_path: Path) -> None:
    one = parent(3, 5, "fails", "serves")
    assert one.ended() == 3
    # The worker itself has printed the reason. It may still be asked to end before it ends by itself.
    assert [line for line in one.said if not line.startswith("w1: ")] == []
    assert not (tmp_path / "starts-2").exists()


def test_a_first_worker_that_breaks_without_a_word_is_named(parent: Callable[..., Parent]) -> None:
    one = parent(2, 5, "breaks")
    assert one.ended() == 3
    assert one.said == ["mcpace: worker 1 ended with exit code 7 before it served"]


def test_one_that_can_no_longer_start_is_given_up(parent: Callable[..., Parent]) -> None:
    one = parent(2, 5, "serves", "serves,fails")
    workers = pids(one, 2)
    one.until("all serve")
    os.kill(workers[2], signal.SIGKILL)
    assert one.ended() == 3
    assert any(f"before it served, {GIVE_UP_AFTER} times in a row: giving up" in line for line in one.said)
    assert gone(workers[1])


@pytest.mark.parametrize("way", ["serves", "ignores", "stuck"])
def test_kill_9_of_the_parent_ends_the_workers(way: str, parent: Callable[..., Parent]) -> None:
    one = parent(2, 5, way)
    pids(one, 2)
    one.until("all serve")
    one.process.kill()
    # The end of stderr comes with the end of the last process that holds it.
    assert one.ended() == -signal.SIGKILL


def test_a_parent_that_is_killed_while_a_worker_starts_leaves_none(parent: Callable[..., Parent]) -> None:
    one = parent(2, 5, "serves")
    pids(one, 1)
    one.process.kill()
    assert one.ended() == -signal.SIGKILL


def test_delays_double_and_end() -> None:
    restarts = Restarts()
    delays = [restarts.died(served_s=1.0) for _ in range(9)]
    assert delays == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_DELAY_S, LONGEST_DELAY_S]
    assert restarts.died(served_s=WELL_AFTER_S) == 0.0
    assert restarts.died(served_s=1.0) == 0.0


def test_starts_that_come_to_nothing_are_given_up() -> None:
    restarts = Restarts()
    delays = [restarts.died(served_s=None) for _ in range(GIVE_UP_AFTER)]
    assert delays[0] == FIRST_DELAY_S
    assert delays[-1] is None
    assert None not in delays[:-1]
    again = Restarts()
    for _ in range(GIVE_UP_AFTER * 3):
        assert again.died(served_s=None) is not None
        assert again.died(served_s=1.0) is not None


def test_endings_are_words() -> None:
    assert describe_exit(0) == "ended with exit code 0"
    assert describe_exit(-9) == "was ended by SIGKILL"
    assert describe_exit(-77) == "was ended by signal 77"
