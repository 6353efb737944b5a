"""Loads whose workers are on three machines: network namespaces with an sshd each, one of them far away.

All namespaces have the clock of this machine, so the true start of each worker is known. Each worker writes its own
ledger before it sends, and the server writes down each call; both are compared with the figures of the driver.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import select
import shlex
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mcpace.lab.load.engine_outcome import Outcome
from mcpace.lab.load.plan import Closed, HttpTarget, LoadPlan, Open, Operation
from mcpace.lab.load.workers.places import parse_workers
from mcpace.lab.load.workers.protocol import SILENCE_LIMIT_S
from mcpace.lab.load.workers.run_workers import run_workers
from mcpace.report.model.load import LoadSecond, LoadWorker
from mcpace.report.words.load import worker_remark
from support.commands import LIMIT_S, end, start_command
from support.finding_scenes import patient
from support.network import NEEDS, Network, Road, connect_network, has_namespaces
from support.serve_process import serving
from support.shared_load import Watched
from support.ssh_server import MISSING, SshHost, ssh_server

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} is not installed"),
]
HOSTS = ("left", "right", "far")
FAR = Road(delay_s=0.02)
"""40 ms from a request to its reply."""
LOSS = 0.01
SKEW_LIMIT_S = 0.002
END_LIMIT_S = 10.0
"""Seconds beyond the limit of silence in which the driver ends."""
CLOCK_SHIFT_S = 3
STILL_S = 3
"""A machine stands still for longer: until the second after the pause is published without it."""
LOADS = itertools.count(1)
SERVER = """
    import time

    from mcpace import MCPServer

    server = MCPServer("loaded")
    calls = open("calls.txt", "a", buffering=1)

    @server.tool()
    def keep(n: int, user: int, load: int) -> str:
        "Writes down what it was asked."
        calls.write(f"{n} {user} {load} {time.perf_counter_ns()}\\n")
        return "kept"
"""
WORKER = """
    import json
    import os
    import sys
    import time
    from pathlib import Path

    def own_file(kind):
        return Path(__file__).with_name(f"{os.environ['SSH_CONNECTION'].split()[2]}-{kind}")

    shift_s = int(own_file("shift").read_text()) if own_file("shift").exists() else 0
    if shift_s and "SHIFTED" not in os.environ:
        os.environ["SHIFTED"] = "1"
        os.execvp("unshare", ["unshare", "-T", "--monotonic", str(shift_s), sys.executable, *sys.argv])
    if shift_s:
        time_ns = time.time_ns
        time.time_ns = lambda: time_ns() + shift_s * 10**9

    from mcpace.lab.load.workers import worker

    own_file("pid").write_text(str(os.getpid()))
    ledger = own_file("ledger").open("w", buffering=1)
    send = worker._Conversation.send

    def keep(self, kind, **members):
        ledger.write(json.dumps({"kind": kind, **members}) + "\\n")
        send(self, kind, **members)

    worker._Conversation.send = keep
    worker.run_worker()
"""


@dataclass(frozen=True)
class Machines:
    """The workers' machines and the server."""

    folder: Path
    networks: dict[str, Network]
    url: str
    environment: dict[str, str]
    sshd: tuple[int, ...]
    load: int = 0
    """Number of the load: calls of a lost worker may arrive during the next one."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the tool."""
        return {"n": "{{counter}}", "user": "{{user}}", "load": self.load}

    @property
    def words(self) -> tuple[str, ...]:
        """The options of the command line."""
        python = ["env", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}", sys.executable]
        command = shlex.join([*python, str(self.folder / "worker.py")])
        return ("--workers", f"ssh:{','.join(HOSTS)}", "--worker-command", command)

    def file(self, host: str, kind: str) -> Path:
        """A file of the worker on a host."""
        return self.folder / f"{self.networks[host].far}-{kind}"

    def pid(self, host: str) -> int:
        return int(self.file(host, "pid").read_text())

    def ledger(self, host: str, kind: str) -> list[dict[str, Any]]:
        """Messages of one kind that the worker on a host has sent."""
        lines = self.file(host, "ledger").read_text().splitlines()
        return [message for line in lines if (message := json.loads(line))["kind"] == kind]

    def served(self) -> list[tuple[int, int, int]]:
        """The number, the user and the time of each call of this load, by the server."""
        lines = (self.folder / "calls.txt").read_text().splitlines()
        calls = [tuple(map(int, line.split())) for line in lines]
        return [(n, user, at_ns) for n, user, load, at_ns in calls if load == self.load]

    def strays(self) -> list[int]:
        """Processes of the machines other than their servers."""
        return [pid for one in self.networks.values() for pid in one.processes() if pid not in self.sshd]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    if not has_namespaces():
        pytest.skip(NEEDS)
    folder = tmp_path_factory.mktemp("machines")
    (folder / "worker.py").write_text(textwrap.dedent(WORKER))
    with ExitStack() as stack:
        networks = {
            host: stack.enter_context(connect_network(FAR if host == "far" else Road(), number))
            for number, host in enumerate(HOSTS, start=2)
        }
        networks["far"].lose_packets(LOSS)
        near = networks["far"].near
        words = ("--port", "0", "--host", near, "--allowed-host", near)
        served = stack.enter_context(serving(folder, "server.py", *words, source=SERVER))
        served.ready()
        hosts = [SshHost(name, network.far, network.enter_command()) for name, network in networks.items()]
        server = stack.enter_context(ssh_server(folder, hosts))
        url = f"http://{near}:{served.port}/mcp"
        yield Machines(folder, networks, url, server.environment, server.processes)


@pytest.fixture
def machines(running: Machines, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """The machines, without anything of another load."""
    for host in HOSTS:
        for kind in ("pid", "ledger", "shift"):
            running.file(host, kind).unlink(missing_ok=True)
    monkeypatch.setenv("PATH", running.environment["PATH"])
    yield replace(running, load=next(LOADS))
    for pid in running.strays():
        os.kill(pid, signal.SIGKILL)


def run_load(machines: Machines, watched: Watched, **changes: Any) -> tuple[Outcome, dict[str, LoadWorker]]:
    """Runs a load on all machines. Returns its outcome, and the workers by their hosts."""
    options: dict[str, Any] = {
        "target": HttpTarget(url=machines.url),
        "revision": "2026-07-28",
        "session": "none",
        "model": Closed(vus=15),
        "duration_s": 5.0,
        "warm_up_s": 0.0,
        "operations": [Operation(name="keep", kind="call", tool="keep", arguments=machines.arguments)],
        "timeout_s": 10.0,
        "think_s": 0.02,
    }
    _, hosts, _, command = machines.words
    outcome, workers = run_workers(LoadPlan(**options | changes), parse_workers([hosts], command), watched)
    return outcome, dict(zip(HOSTS, workers, strict=True))


def check_accounts(machines: Machines, outcome: Outcome, workers: dict[str, LoadWorker]) -> None:
    """The figures are the sums of the workers' own ledgers, and each call that the server has seen is counted once.

    A lost worker is counted up to the last second that has arrived.
    """
    parts: list[dict[str, Any]] = []
    for host, worker in workers.items():
        ends, deltas = machines.ledger(host, "outcome"), [one["delta"] for one in machines.ledger(host, "delta")]
        of_seconds = [one for delta in deltas for one in delta["operations"]]
        if worker.state == "done":
            [own] = ends
            operations = own["outcome"]["operations"]
            assert worker.missing_share == 0
            assert sum(one["count"] for one in of_seconds) == sum(one["count"] for one in operations)
        else:
            assert worker.counted_s is not None
            arrived = [one for one in deltas if one["second"]["at_s"] < worker.counted_s]
            operations = [one for delta in arrived for one in delta["operations"]]
        assert worker.calls == sum(one["count"] for one in operations)
        assert worker.errors == sum(one["count"] - one["ok"] for one in operations)
        parts += operations
    [keep] = outcome.operations
    assert keep.count == sum(worker.calls for worker in workers.values()) == sum(one["count"] for one in parts)
    numbers = [n for n, _, _ in machines.served()]
    assert len(numbers) == len(set(numbers))
    assert keep.ok <= len(numbers)
    # All samples together, each with the bound of its bucket.
    samples = sorted(bound for one in parts for bound, count in one["latency"]["buckets"] for _ in range(count))
    assert len(samples) == keep.latency.count == keep.ok
    bounds = sorted(set(samples))
    for share, told_s in ((0.5, keep.latency.p50_s), (0.9, keep.latency.p90_s), (0.99, keep.latency.p99_s)):
        exact = bounds.index(samples[math.ceil(share * len(samples)) - 1])
        low, high = bounds[max(exact - 1, 0)], bounds[min(exact + 1, len(bounds) - 1)]
        assert low <= told_s * 1e9 <= high


def check_served(machines: Machines, outcome: Outcome) -> None:
    """Each call that the server saw during the load is counted.

    A thread that is late sends calls that are due after the end; they are no part of the load.
    """
    end_ns = outcome.started_ns + round(outcome.measured_s * 1e9)
    during = sum(at_ns < end_ns for _, _, at_ns in machines.served())
    assert during <= outcome.operations[0].count <= len(machines.served())


def check_starts(machines: Machines, outcome: Outcome, workers: dict[str, LoadWorker], shift_s: int = 0) -> None:
    """The true start of each worker lies within the reported one and its error."""
    first_ns: dict[int, int] = {}
    for _, user, at_ns in machines.served():
        first_ns.setdefault(user % len(HOSTS), at_ns)
    for number, (host, worker) in enumerate(workers.items()):
        own_shift_s = shift_s if host == "right" else 0
        started_ns = machines.ledger(host, "outcome")[0]["outcome"]["started_ns"] - own_shift_s * 10**9
        true_skew_s = (started_ns - outcome.started_ns) / 1e9
        assert worker.start_skew_s is not None
        assert worker.uncertainty_s is not None
        assert worker.time_offset_s is not None
        assert abs(worker.start_skew_s - true_skew_s) <= worker.uncertainty_s
        assert abs(worker.time_offset_s - own_shift_s) <= worker.uncertainty_s
        # A connection and a request take three ways.
        way_s = FAR.delay_s if host == "far" else 0.0
        assert first_ns[number] >= started_ns + 3 * way_s * 1e9
        assert worker.uncertainty_s >= way_s


def check_no_strays(machines: Machines) -> None:
    """All workers have ended, with their connections."""
    deadline = time.monotonic() + LIMIT_S
    while strays := machines.strays():
        await_exit(strays[0], deadline)


def await_exit(pid: int, deadline: float) -> None:
    """Waits for the end of a process until a time of the monotonic clock."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    has_ended = select.select([descriptor], [], [], max(deadline - time.monotonic(), 0.0))[0]
    os.close(descriptor)
    assert has_ended, f"process {pid} goes on"


def test_the_load_of_three_machines_is_one_load(machines: Machines) -> None:
    watched = Watched()
    outcome, workers = run_load(machines, watched)
    check_accounts(machines, outcome, workers)
    check_starts(machines, outcome, workers)
    check_no_strays(machines)
    assert watched.notes == []
    assert [worker.state for worker in workers.values()] == ["done"] * 3
    assert min(worker.calls for worker in workers.values()) > 50
    check_served(machines, outcome)


@patient
def test_workers_start_within_two_milliseconds(machines: Machines) -> None:
    _, workers = run_load(machines, Watched(), duration_s=1.0)
    skews = [worker.start_skew_s for worker in workers.values() if worker.start_skew_s is not None]
    assert len(skews) == len(HOSTS)
    assert max(skews) - min(skews) <= SKEW_LIMIT_S
    assert max(map(abs, skews)) <= SKEW_LIMIT_S


def test_a_worker_that_is_killed_on_its_machine_is_counted_up_to_its_last_second(machines: Machines) -> None:
    watched = Watched(lambda second: os.kill(machines.pid("far"), signal.SIGKILL) if round(second.at_s) == 1 else None)
    outcome, workers = run_load(machines, watched)
    check_accounts(machines, outcome, workers)
    check_no_strays(machines)
    assert [worker.state for worker in workers.values()] == ["done", "done", "lost"]
    assert workers["far"].counted_s in (2, 3, 4)
    assert workers["far"].missing_share == pytest.approx((1 - workers["far"].counted_s / 5) / 3)
    assert watched.notes == [
        "ssh far: the connection ended (ssh has exit code 255): the worker was killed, or its host is gone. "
        "The rest of its part of the load is missing"
    ]


def test_no_worker_goes_on_without_the_driver(machines: Machines, tmp_path: Path) -> None:
    words = (*machines.words, "--vus", 15, "--think", "20ms", "--duration", "60s", "--warm-up", "0s", "--tool", "keep")
    words += ("--args", json.dumps(machines.arguments))
    with start_command("load", machines.url, *words, folder=tmp_path) as process:
        deadline = time.monotonic() + LIMIT_S
        while len({user % len(HOSTS) for _, user, _ in machines.served()}) < len(HOSTS):
            assert time.monotonic() < deadline
            assert process.poll() is None, end(process)
            time.sleep(0.05)
        process.kill()
        process.wait()
        killed = time.monotonic()
        check_no_strays(machines)
    assert time.monotonic() - killed < SILENCE_LIMIT_S


def test_a_machine_behind_a_broken_network_is_given_up_and_its_share_is_missing(machines: Machines) -> None:
    with ExitStack() as broken:
        cut: list[float] = []

        def cut_network(second: LoadSecond) -> None:
            if round(second.at_s) == 1:
                broken.enter_context(machines.networks["far"].cut_off())
                cut.append(time.monotonic())

        outcome, workers = run_load(machines, Watched(cut_network))
        took_s = time.monotonic() - cut[0]
        # The worker hears nobody, and ends by itself.
        await_exit(machines.pid("far"), cut[0] + SILENCE_LIMIT_S + END_LIMIT_S)
    check_accounts(machines, outcome, workers)
    assert [worker.state for worker in workers.values()] == ["done", "done", "lost"]
    assert workers["far"].counted_s in (2, 3, 4)
    assert workers["far"].missing_share == pytest.approx((1 - workers["far"].counted_s / 5) / 3)
    assert took_s < SILENCE_LIMIT_S + END_LIMIT_S
    assert workers["far"].reason is not None
    assert "nothing was heard of it for" in workers["far"].reason


def test_a_network_that_is_broken_for_some_seconds_costs_no_call(machines: Machines) -> None:
    with ExitStack() as broken:

        def change_network(second: LoadSecond) -> None:
            if round(second.at_s) == 1:
                broken.enter_context(machines.networks["right"].cut_off())
            elif round(second.at_s) == 4:
                broken.close()

        watched = Watched(change_network)
        outcome, workers = run_load(machines, watched, duration_s=10.0)
    check_accounts(machines, outcome, workers)
    check_no_strays(machines)
    assert [worker.state for worker in workers.values()] == ["done"] * 3
    check_served(machines, outcome)
    assert workers["right"].report_late_s > STILL_S
    assert "late: it or its network stood still" in worker_remark(workers["right"])
    assert max(workers["left"].report_late_s, workers["far"].report_late_s) < STILL_S


def test_a_clock_that_is_three_seconds_ahead_changes_no_start(machines: Machines) -> None:
    machines.file("right", "shift").write_text(str(CLOCK_SHIFT_S))
    outcome, workers = run_load(machines, Watched())
    check_accounts(machines, outcome, workers)
    check_starts(machines, outcome, workers, CLOCK_SHIFT_S)
    check_no_strays(machines)


@pytest.mark.parametrize("model", [Open(rate=150.0, max_in_flight=60), Closed(vus=15)])
def test_a_machine_that_stands_still_for_a_while_is_said_to_be_late(machines: Machines, model: Open | Closed) -> None:
    def change_speed(second: LoadSecond) -> None:
        if round(second.at_s) in (1, 4):
            os.kill(machines.pid("right"), signal.SIGSTOP if round(second.at_s) == 1 else signal.SIGCONT)

    think_s = 0.0 if isinstance(model, Open) else 0.02
    outcome, workers = run_load(machines, Watched(change_speed), model=model, duration_s=12.0, think_s=think_s)
    check_accounts(machines, outcome, workers)
    check_no_strays(machines)
    right = workers["right"]
    assert right.report_late_s > STILL_S
    assert "late: it or its network stood still" in worker_remark(right)
    assert max(workers["left"].report_late_s, workers["far"].report_late_s) < STILL_S
    if isinstance(model, Open):
        assert outcome.intended == 150 * 12
        assert outcome.engine.late_p99_s > 2
        assert right.saturated
        assert right.calls + right.never_started == right.intended
