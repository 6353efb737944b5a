"""Loads with several workers: real processes on this machine, and over a real sshd.

Loads are short: tests check counts and states, never speed.
"""

from __future__ import annotations

import fcntl
import importlib.util
import itertools
import json
import os
import random
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcpace import __version__, _core
from mcpace.lab.errors import Unreachable, UsageProblem
from mcpace.lab.load.engine_outcome import Connections, Histogram, Second
from mcpace.lab.load.histogram import quantile_seconds
from mcpace.lab.load.plan import Closed, Open, Operation, Stage
from mcpace.lab.load.workers import worker_link
from mcpace.lab.load.workers.clock_offset import RoundTrip, estimate_offset
from mcpace.lab.load.workers.load_shares import remaining_share
from mcpace.lab.load.workers.messages import Delta, DeltaMessage
from mcpace.lab.load.workers.places import ProcessPlace, RayPlace, WorkerPlace, parse_workers
from mcpace.lab.load.workers.protocol import PROTOCOL, encode_message
from mcpace.lab.load.workers.run_workers import _SharedLoad, run_workers
from mcpace.lab.load.workers.shared_seconds import SharedSeconds
from mcpace.lab.load.workers.worker import find_obstacle
from mcpace.report.model.load import LoadSecond
from support.commands import closed_port, end, mcp_answer, read_request, run, start_command, tcp_server
from support.serve_process import serving
from support.shared_load import Watched, check_totals, plan_for
from support.ssh_server import HOST, MISSING, ssh_server

DONE, HIT, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130
SHORT = ("--duration", "1s", "--warm-up", "0s")
WORKER = (sys.executable, "-m", "mcpace", "load-worker")
SERVER = """
    from mcpace import MCPServer

    server = MCPServer("loaded")

    @server.tool()
    def echo(text: str) -> str:
        "Gives back."
        return text

    @server.tool()
    def keep(n: int, user: int) -> str:
        "Writes down what it was asked."
        with open("kept.txt", "a") as file:
            file.write(f"{n} {user}\\n")
        return "kept"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with serving(folder, "server.py", "--port", "0", source=SERVER) as served:
        served.ready()
        yield f"http://127.0.0.1:{served.port}/mcp"


def local(name: str, command: Sequence[str] = WORKER) -> WorkerPlace:
    return ProcessPlace(name, True, tuple(command))


def noted_pid(file: Path) -> list[str]:
    """The command of a worker that writes its process id to a file."""
    return ["sh", "-c", f"echo $$ > {shlex.quote(str(file))}; exec {shlex.join(WORKER)}"]


def case_of(*words: object, folder: Path, code: int = DONE, **environment: str) -> tuple[dict[str, Any], str]:
    """Runs a load and returns its case as JSON, and stderr."""
    ended = run("load", *words, "--json", folder=folder, environment=environment)
    assert ended.code == code, ended.stderr
    [case] = json.loads(ended.stdout)["cases"]
    return case, ended.stderr


def test_local_workers_make_the_load_of_one_process(url: str, folder: Path, tmp_path: Path) -> None:
    words = ["--tool", "keep", "--args", '{"n": "{{counter}}", "user": "{{user}}"}', "--vus", 5]
    words += ["--max-calls", 301, "--duration", "60s", "--warm-up", "0s", "--revision", "2025-06-18"]
    words += ["--workers", "local:2", "--threshold", "errors<1"]
    case, _ = case_of(url, *words, folder=tmp_path)
    load, keep = case["load"], case["by_tool"]["keep"]
    assert (keep["count"], keep["ok"], load["ended"]) == (301, 301, "done")
    assert load["others"]["initialize"]["ok"] == 5
    assert [(one["place"], one["state"], one["missing_share"]) for one in load["workers"]] == [
        ("local 1", "done", 0.0), ("local 2", "done", 0.0),
    ]  # fmt: skip
    assert sorted(one["calls"] for one in load["workers"]) == [150, 151]
    assert sum(count for _, count in keep["latency_buckets"]) == 301
    assert load["engine"]["threads"] == 2
    assert load["thresholds"][0]["met"]
    kept = [line.split() for line in (folder / "kept.txt").read_text().splitlines()[-301:]]
    assert len({number for number, _ in kept}) == 301
    assert {user for _, user in kept} == {"0", "1", "2", "3", "4"}


def test_an_open_load_is_divided_call_by_call(url: str, tmp_path: Path) -> None:
    words = ["--rate", 101, *SHORT, "--tool", "echo", "--args", '{"text": "hi"}', "--workers", "local:3"]
    case, _ = case_of(url, *words, folder=tmp_path)
    assert case["load"]["intended"] == 101
    assert sorted(one["intended"] for one in case["load"]["workers"]) == [33, 34, 34]
    assert sum(second["intended"] for second in case["seconds"]) == 101


def test_workers_start_at_the_agreed_instant(url: str) -> None:
    watched = Watched()
    before = time.perf_counter_ns()
    outcome, workers = run_workers(plan_for(url, duration_s=2.0, warm_up_s=1.0), parse_workers(["local:2"]), watched)
    check_totals(outcome, workers)
    assert outcome.started_ns > before
    for worker in workers:
        # All processes of this machine have one clock, so the true offset is 0.
        assert worker.time_offset_s is not None
        assert worker.uncertainty_s is not None
        assert worker.start_skew_s is not None
        assert abs(worker.time_offset_s) <= worker.uncertainty_s
        assert worker.uncertainty_s < 0.1
        assert worker.start_skew_s > -worker.uncertainty_s
    assert [second.at_s for second in watched.seconds[:3]] == [0, 1, 2]
    assert [second.warm_up for second in watched.seconds[:3]] == [True, False, False]
    assert watched.seconds[1].users == 4
    live = sum(second.ok for second in watched.seconds if not second.warm_up)
    assert live == sum(second.ok for second in outcome.seconds if not second.warm_up)
    assert 2.0 <= outcome.measured_s < 2.5


def test_a_killed_worker_is_counted_up_to_its_last_report(url: str, folder: Path, tmp_path: Path) -> None:
    pids = [tmp_path / "first", tmp_path / "second"]

    def kill_second(second: LoadSecond) -> None:
        if second.at_s == 1:
            os.kill(int(pids[1].read_text()), signal.SIGKILL)

    watched = Watched(kill_second)
    places = [local(file.name, noted_pid(file)) for file in pids]
    kept = folder / "kept.txt"
    kept.write_text("")
    arguments = {"n": "{{counter}}", "user": "{{user}}"}
    operations = [Operation(name="keep", kind="call", tool="keep", arguments=arguments)]
    outcome, workers = run_workers(plan_for(url, duration_s=4.0, operations=operations), places, watched)
    check_totals(outcome, workers)
    first, second = workers
    # The server's own count, by worker: users 0 and 2 are the first one's.
    served = Counter(int(line.split()[1]) % 2 for line in kept.read_text().splitlines())
    assert served[0] == first.calls
    assert second.calls <= served[1] <= second.calls * 2
    assert (first.state, first.missing_share) == ("done", 0.0)
    assert second.state == "lost"
    assert second.reason == "it was ended by SIGKILL"
    assert second.counted_s is not None
    assert 2 <= second.counted_s <= 3
    assert second.missing_share == pytest.approx(0.5 * (4 - second.counted_s) / 4)
    assert second.calls > 50
    assert watched.notes == ["second: it was ended by SIGKILL. The rest of its part of the load is missing"]
    assert outcome.ended == "done"
    # The other one goes on with its users, and takes none of the lost.
    assert outcome.seconds[3].users == 2


def test_a_worker_that_is_silent_is_given_up(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_link, "SILENCE_LIMIT_S", 4.0)
    pids = [tmp_path / "first", tmp_path / "second"]

    def stop_second(second: LoadSecond) -> None:
        if second.at_s == 0:
            os.kill(int(pids[1].read_text()), signal.SIGSTOP)

    watched = Watched(stop_second)
    places = [local(file.name, noted_pid(file)) for file in pids]
    outcome, workers = run_workers(plan_for(url, duration_s=7.0), places, watched)
    check_totals(outcome, workers)
    assert [worker.state for worker in workers] == ["done", "lost"]
    assert workers[1].reason == "nothing was heard of it for 4 s"
    assert workers[1].counted_s in (1, 2)
    # The silent one does not delay the live view to the end of the load.
    assert len(watched.seconds) >= 7
    assert not Path(f"/proc/{pids[1].read_text().strip()}").exists()


def test_stages_and_threads_are_those_of_one_load(url: str) -> None:
    stages = [Stage(0.0, 7.0), Stage(1.5, 7.0)]
    plan = plan_for(url, model=Closed(vus=1), duration_s=None, stages=stages, threads=2)
    outcome, workers = run_workers(plan, parse_workers(["local:2"]), Watched())
    check_totals(outcome, workers)
    assert [(worker.state, worker.threads) for worker in workers] == [("done", 2)] * 2
    assert outcome.seconds[0].users == 7
    assert next(one.ok for one in outcome.operations if one.name == "initialize") == 7
    assert outcome.engine.threads == 4


def test_the_last_worker_to_be_killed_ends_the_load(url: str, tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def kill_worker(second: LoadSecond) -> None:
        os.kill(int(pid.read_text()), signal.SIGKILL)

    outcome, workers = run_workers(
        plan_for(url, duration_s=30.0), [local("only", noted_pid(pid))], Watched(kill_worker)
    )
    check_totals(outcome, workers)
    assert outcome.ended == "failed"
    assert outcome.failure == "all workers were lost: only: it was ended by SIGKILL"
    assert 1 <= outcome.measured_s <= 3
    assert workers[0].calls > 0


def test_a_worker_of_another_version_takes_no_part(url: str) -> None:
    start = "from mcpace.lab.load.workers.worker import run_worker; run_worker()"
    old = f"import mcpace; mcpace.__version__ = '0.0.1'; {start}"
    watched = Watched()
    places = [local("new"), local("old", [sys.executable, "-c", old])]
    outcome, workers = run_workers(plan_for(url), places, watched)
    check_totals(outcome, workers)
    assert [worker.state for worker in workers] == ["done", "refused"]
    assert workers[1].missing_share == 0.5
    assert workers[1].reason is not None
    assert workers[1].reason.startswith("it has mcpace 0.0.1, and this machine ")
    assert outcome.seconds[0].users == 2


def test_workers_that_cannot_begin_are_named(url: str) -> None:
    noise = "import sys; print('welcome'); print('to the host', flush=True); sys.exit('no such thing here')"
    places = [
        local("gone", ["/no/such/program"]),
        local("noisy", [sys.executable, "-c", noise]),
        local("foreign", [sys.executable, "-c", 'print(\'{"kind": "\\x1b[31m"}\')']),
    ]
    with pytest.raises(Unreachable) as caught:
        run_workers(plan_for(url), places, Watched())
    text = str(caught.value)
    assert text.startswith("no worker could begin the load: ")
    assert "gone: /no/such/program can't be started: No such file or directory" in text
    assert "noisy: it exited with code 1: no such thing here" in text
    assert "foreign: it sent something that is no message" in text


def test_a_worker_that_prints_before_its_first_message_takes_part(url: str) -> None:
    command = ["sh", "-c", f"echo Welcome to this host; exec {shlex.join(WORKER)}"]
    outcome, workers = run_workers(plan_for(url), [local("greeting", command)], Watched())
    check_totals(outcome, workers)
    assert workers[0].state == "done"


SCRIPTED = """
import json, sys
hello, answers = sys.argv[1], json.loads(sys.argv[2])
print(hello, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    for text in answers.get(asked["kind"], []):
        print(text.replace("NUMBER", str(asked.get("number"))), flush=True)
    while asked["kind"] == answers.get("repeats"):
        print(text)
"""
"""A worker that answers each kind of message with fixed texts, and repeats the last one without end."""
HELLO = json.dumps({"kind": "hello", "protocol": PROTOCOL, "version": __version__})
CLOCK = '{"kind": "clock", "number": NUMBER, "clock_ns": 1, "time_ns": 1}'
READY = '{"kind": "ready"}'


def scripted(**answers: Any) -> WorkerPlace:
    whole = {"clock": [CLOCK], "prepare": [READY], **answers}
    return local("scripted", [sys.executable, "-c", SCRIPTED, HELLO, json.dumps(whole)])


def delta_text(at_s: Any) -> str:
    """The line of a worker's second."""
    message = DeltaMessage(kind="delta", delta=delta(0, [1])).model_dump(mode="json")
    message["delta"]["second"]["at_s"] = at_s
    return json.dumps(message)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"clock": [CLOCK.replace("NUMBER", "7")]}, "it answered another 'clock' than the last"),
        ({"clock": [CLOCK.replace("1,", f"{10**400},")]}, "clock.clock_ns: Input should be less than"),
        ({"prepare": ["x" * 3_000]}, "it sent something that is no message (Invalid JSON"),
        ({"prepare": [CLOCK.replace("NUMBER", "1")], "repeats": "prepare"}, "answered 'prepare' with something else"),
        ({"prepare": [json.dumps({"kind": "refused", "reason": "\x1b[31mno\n" * 2_000})]}, "scripted: [31mno [31mno"),
    ],
)
def test_strange_answers_of_a_worker_end_it(url: str, answers: dict[str, Any], said: str) -> None:
    with pytest.raises(Unreachable) as caught:
        run_workers(plan_for(url), [scripted(**answers)], Watched())
    assert said in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.parametrize("at_s", [float("nan"), float("inf"), -1, 1e400, "soon", None])
def test_a_second_that_is_no_time_ends_its_worker(url: str, at_s: Any) -> None:
    outcome, [worker] = run_workers(plan_for(url), [scripted(start=[delta_text(at_s)])], Watched())
    assert (outcome.ended, worker.state, worker.calls) == ("failed", "lost", 0)
    assert worker.reason is not None and "delta.delta.second.at_s: Input should be" in worker.reason


def test_messages_without_end_do_not_hold_up_the_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpace.lab.load.workers.run_workers.END_LIMIT_S", 0.5)
    place = scripted(start=[delta_text(0)], repeats="start")
    _, [worker] = run_workers(plan_for(url, drain_s=0.0), [place], Watched())
    assert (worker.state, worker.reason) == ("lost", "it did not end in time")


def can_unshare() -> bool:
    """Whether this machine lets us make a network namespace."""
    command = shutil.which("unshare")
    return command is not None and subprocess.run([command, "-rn", "true"], check=False).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="this machine lets us make no network namespace")
def test_a_worker_that_cannot_reach_the_target_takes_no_part(url: str) -> None:
    watched = Watched()
    places = [local("near"), local("cut off", ["unshare", "-rn", *WORKER])]
    outcome, workers = run_workers(plan_for(url), places, watched)
    check_totals(outcome, workers)
    assert [worker.state for worker in workers] == ["done", "refused"]
    assert workers[1].reason is not None
    assert "can't be reached: Network is unreachable" in workers[1].reason
    assert watched.notes[0].startswith("cut off: 127.0.0.1:")


def test_obstacles_of_a_worker() -> None:
    port = closed_port()
    assert find_obstacle({"kind": "http", "url": f"http://127.0.0.1:{port}/mcp"}) == (
        f"127.0.0.1:{port} can't be reached: Connection refused"
    )
    unknown = find_obstacle({"kind": "http", "url": "https://no-such-host.invalid/mcp"})
    assert unknown is not None
    assert unknown.startswith("no-such-host.invalid:443 can't be reached: ")
    assert find_obstacle({"kind": "stdio", "command": ["no-such-program"]}) == "there is no program no-such-program"
    assert find_obstacle({"kind": "stdio", "command": [sys.executable]}) is None


@contextmanager
def load_under_way(folder: Path, *words: object) -> Iterator[subprocess.Popen[str]]:
    """A load of two workers, from the moment when both have called."""
    calls = [itertools.count(), itertools.count()]
    has_called = [threading.Event(), threading.Event()]

    def answer(connection: socket.socket) -> None:
        request = read_request(connection)
        for user in range(2):
            if b'"user":%d' % user in request and next(calls[user]) > 20:
                has_called[user].set()
        connection.sendall(mcp_answer(request, tool="echo"))

    words = ("--vus", 2, "--duration", "60s", "--warm-up", "0s", "--workers", "local:2", *words)
    words += ("--tool", "echo", "--args", '{"user": "{{user}}"}')
    with tcp_server(answer, read=False) as place, start_command("load", place, *words, folder=folder) as process:
        assert all(event.wait(60) for event in has_called), process.poll()
        yield process


def test_ctrl_c_ends_all_workers_and_keeps_what_they_counted(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with load_under_way(tmp_path, "--out", out) as process:
        workers = [os.pidfd_open(pid) for pid in children(process.pid)]
        process.send_signal(signal.SIGINT)
        ended = end(process)
    assert ended.code == INTERRUPTED, ended.stderr
    document = json.loads(out.read_text())
    [case] = document["cases"]
    assert document["partial"] is True
    assert case["load"]["ended"] == "stopped"
    assert [(one["state"], one["missing_share"]) for one in case["load"]["workers"]] == [("done", 0.0)] * 2
    assert sum(one["calls"] for one in case["load"]["workers"]) == case["by_tool"]["echo"]["count"] >= 40
    check_ended(workers)


def test_a_worker_that_does_not_answer_is_ended(url: str, tmp_path: Path) -> None:
    hello = json.dumps({"kind": "hello", "protocol": PROTOCOL, "version": __version__})
    pid = tmp_path / "pid"
    silent = ["sh", "-c", f"echo $$ > {shlex.quote(str(pid))}; echo {shlex.quote(hello)}; exec sleep 600"]
    with pytest.raises(Unreachable, match=r"silent: it did not answer 'clock' within 5 s$"):
        run_workers(plan_for(url), [local("silent", silent)], Watched())
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_a_worker_that_reads_nothing_does_not_hold_up_the_end(url: str, tmp_path: Path) -> None:
    """The plan is larger than the worker's pipe, and the load is given up while it is being sent."""
    pid = tmp_path / "pid"
    link = worker_link.WorkerLink(local("deaf", ["sh", "-c", f"echo $$ > {shlex.quote(str(pid))}; exec sleep 600"]))
    load = _SharedLoad(plan_for(url), Watched(), 1)
    load._links[0] = link
    link.send_plan({"data": "x" * 1_000_000}, {"first_thread": 0, "all_threads": 1})
    load.close()
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()
    assert link.state == "refused"


def test_workers_end_with_their_driver(tmp_path: Path) -> None:
    with load_under_way(tmp_path) as process:
        workers = [os.pidfd_open(pid) for pid in children(process.pid)]
        process.kill()
        process.wait()
        check_ended(workers)


def check_ended(descriptors: Sequence[int]) -> None:
    """All processes end: a descriptor of an ended process is readable."""
    assert len(descriptors) == 2
    for descriptor in descriptors:
        assert select.select([descriptor], [], [], 20)[0], "a worker goes on without its driver"
        os.close(descriptor)


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in listed.stdout.split()]


@pytest.mark.skipif(sys.platform != "linux", reason="pipes of a chosen size are Linux's")
def test_a_worker_that_cannot_write_ends_without_its_driver(url: str) -> None:
    """Its output is full, as behind a broken network, and its input stays open."""
    limits = "worker.SILENCE_LIMIT_S = 2; worker.END_LIMIT_S = 1"
    command = f"from mcpace.lab.load.workers import worker; {limits}; worker.run_worker()"
    with subprocess.Popen(
        [sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
            plan = json.loads(plan_for(url, duration_s=60.0).to_json())
            process.stdin.write(encode_message("prepare", plan=plan, share={"first_thread": 0, "all_threads": 1}))
            messages = [json.loads(process.stdout.readline())["kind"] for _ in range(2)]
            assert messages == ["hello", "ready"]
            process.stdin.write(encode_message("start", at_ns=time.perf_counter_ns()))
            assert json.loads(process.stdout.readline())["kind"] == "delta"
            for number in range(200):
                process.stdin.write(encode_message("clock", number=number))
            assert process.wait(20) == 1
        finally:
            process.kill()


def test_the_end_of_a_connection_to_a_host_is_named() -> None:
    place = ProcessPlace("ssh a", False, ("sh", "-c", "exit 255"))
    link = worker_link.WorkerLink(place)
    with pytest.raises(worker_link.WorkerFailure, match="the worker was killed, or its host is gone"):
        link.await_hello(time.monotonic() + 20)
    link.close()


def test_a_host_that_does_not_resolve_leaves_its_part_missing(url: str, tmp_path: Path) -> None:
    if "ssh" in MISSING:
        pytest.skip("ssh is not installed")
    words = ["--vus", 4, *SHORT, "--tool", "echo", "--args", '{"text": "hi"}']
    words += ["--workers", "local:1", "--workers", "ssh:no-such-host.invalid"]
    case, stderr = case_of(url, *words, folder=tmp_path, code=UNREACHABLE)
    near, far = case["load"]["workers"]
    assert (near["state"], far["state"], far["missing_share"]) == ("done", "refused", 0.5)
    assert "Could not resolve hostname no-such-host.invalid" in far["reason"]
    assert "the load is not complete: 50 % of the load is missing, the part of ssh no-such-host.invalid" in " ".join(
        stderr.split()
    )
    assert case["by_tool"]["echo"]["count"] == near["calls"] > 0


@pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} is not installed")
def test_workers_over_ssh(url: str, tmp_path: Path) -> None:
    command = shlex.join(["env", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}", sys.executable, "-m", "mcpace"])
    words = ["--vus", 6, "--think", "5ms", "--duration", "2s", "--warm-up", "0s", "--tool", "echo"]
    words += ["--args", '{"text": "hi"}', "--workers", f"ssh:{HOST},{HOST}", "--workers", "local:1"]
    words += ["--revision", "2025-06-18"]
    with ssh_server(tmp_path) as server:
        case, _ = case_of(url, *words, "--worker-command", command, folder=tmp_path, **server.environment)
        # The other user of this host has no key, so ssh is refused.
        lost, stderr = case_of(
            url, *words, "--workers", f"ssh:nobody@{HOST}", "--worker-command", command,
            folder=tmp_path, code=UNREACHABLE, **server.environment,
        )  # fmt: skip
        absent = run(
            "load", url, *SHORT, "--tool", "echo", "--args", '{"text": "hi"}', "--workers", f"ssh:{HOST}",
            "--worker-command", "no-such-mcpace; touch made", folder=tmp_path, environment=server.environment,
        )  # fmt: skip
    workers = case["load"]["workers"]
    assert [one["place"] for one in workers] == [f"ssh {HOST}", f"ssh {HOST} 2", "local 1"]
    assert [one["state"] for one in workers] == ["done"] * 3
    assert all(abs(one["time_offset_s"]) <= one["uncertainty_s"] for one in workers)
    assert sum(one["calls"] for one in workers) == case["by_tool"]["echo"]["count"] > 0
    assert case["load"]["others"]["initialize"]["ok"] == 6
    assert "Permission denied" in lost["load"]["workers"][3]["reason"]
    assert f"ssh nobody@{HOST}" in stderr
    assert absent.code == UNREACHABLE
    assert "no-such-mcpace" in absent.stderr
    assert not (Path.home() / "made").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "here:2"], "--workers 'here:2' can't be read: write local:N"),
        (["--workers", "local:0"], "there may be from 1 to 256 workers"),
        (["--workers", "local:257"], "there may be from 1 to 256 workers"),
        (["--workers", "local:200", "--workers", "local:100"], "at most 256 workers, not 300"),
        (["--workers", "local:\u0663"], "can't be read"),
        (["--workers", "ssh:"], "can't be read"),
        (["--workers", "ssh:a,"], "'' is no host"),
        (["--workers", "ssh:-oProxyCommand=touch${IFS}x"], "is no host"),
        (["--workers", "ssh:host;id"], "is no host"),
        (["--workers", "ssh:host:99999"], "is no host"),
        (["--workers", "ssh:host:\u0662"], "is no host"),
        (["--workers", "ray:0"], "there may be from 1 to 256 workers"),
        (["--workers", "ray:1@host 2"], "can't be read"),
        (["--workers", "ray:1@a:1", "--workers", "ray:1@b:1"], "one load uses one Ray cluster"),
        (["--workers", "ray:2"], "which ray 1 can't reach: give a URL"),
        (["--worker-command", "mcpace", "--workers", "local:1"], "--worker-command is the command of hosts"),
        (["--worker-command", "'", "--workers", "ssh:host"], "can't be split into words"),
        (["--workers", "local:1", "--cores", "0"], "leave them out with --workers"),
        (["--workers", "ssh:host"], "which ssh host can't reach: give a URL"),
        (["--workers", "local:1", "--rate", "10", "--max-in-flight", "1", "--threads", "2"], "at least one for each"),
    ],
)  # fmt: skip
def test_wrong_words_are_refused(words: list[str], said: str, tmp_path: Path) -> None:
    ended = run("load", "profile:simple", *SHORT, *words, folder=tmp_path)
    assert ended.code == USAGE, ended.stderr
    assert said in ended.sentence()


def ssh_places(*words: str, command: str | None = None) -> list[ProcessPlace]:
    return [place for place in parse_workers(words, command) if isinstance(place, ProcessPlace)]


def test_addresses_of_ray_clusters() -> None:
    words = {
        "ray": [("ray 1", "auto")],
        "ray:2": [("ray 1", "auto"), ("ray 2", "auto")],
        "ray:2@head:6379": [("ray 1", "head:6379"), ("ray 2", "head:6379")],
        "ray:ray://head:10001": [("ray 1", "ray://head:10001")],
    }
    for word, expected in words.items():
        places = [place for place in parse_workers([word], threads=3) if isinstance(place, RayPlace)]
        assert [(place.name, place.address) for place in places] == expected
        assert {place.threads for place in places} == {3}


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_the_extra_of_ray_is_named(url: str, tmp_path: Path) -> None:
    ended = run("load", url, *SHORT, "--workers", "ray:1", folder=tmp_path)
    assert ended.code == UNREACHABLE
    assert ended.sentence() == "this command needs ray, which is not installed: pip install 'mcpace[ray]'"


def test_hosts_become_arguments_and_commands_are_quoted() -> None:
    [plain, full, address, again] = ssh_places("ssh:host,me@host.example:2222,[::1]:22", "ssh:host")
    assert plain.command[-3:] == ("--", "host", "mcpace load-worker")
    assert full.command[-5:] == ("-p", "2222", "--", "me@host.example", "mcpace load-worker")
    assert address.command[-2] == "::1"
    assert [one.name for one in (plain, again)] == ["ssh host", "ssh host 2"]
    [quoted] = ssh_places("ssh:host", command="'/my programs/mcpace' '$(id)'")
    assert quoted.command[-1] == "'/my programs/mcpace' '$(id)' load-worker"
    assert "BatchMode=yes" in quoted.command


def test_the_shortest_round_trip_bounds_the_offset() -> None:
    trips = [
        RoundTrip(sent_ns=1_000, received_ns=9_000, sent_time_ns=0, clock_ns=50, time_ns=7),
        RoundTrip(sent_ns=10_000, received_ns=10_101, sent_time_ns=2_000, clock_ns=3_000_010_040, time_ns=1_990),
    ]
    offset = estimate_offset(trips)
    assert (offset.clock_ns, offset.time_ns, offset.uncertainty_ns) == (2_999_999_989, -61, 51)


@pytest.mark.parametrize("delays", [(0, 1), (1, 0), (0.5, 0.5), (0.1, 0.9)])
def test_the_offset_is_within_its_uncertainty(delays: tuple[float, float]) -> None:
    true_ns, away_ns, back_ns = 3_000_000_000, round(delays[0] * 40e6), round(delays[1] * 40e6)
    trip = RoundTrip(1_000, 1_000 + away_ns + back_ns, 5_000, 1_000 + away_ns + true_ns, 5_000 + away_ns - true_ns)
    offset = estimate_offset([trip])
    assert abs(offset.clock_ns - true_ns) <= offset.uncertainty_ns
    assert abs(offset.time_ns + true_ns) <= offset.uncertainty_ns


def test_the_rest_of_a_load_is_the_area_under_its_level() -> None:
    flat = plan_for("http://h/mcp", duration_s=10.0, warm_up_s=2.0)
    assert [remaining_share(flat, at) for at in (0, 2, 7, 12, 20)] == [1.0, 1.0, 0.5, 0.0, 0.0]
    ramp = replace(flat, warm_up_s=0.0, duration_s=None, stages=[Stage(10.0, 0.0), Stage(10.0, 4.0)])
    assert remaining_share(ramp, 10) == pytest.approx(0.5)
    assert remaining_share(ramp, 5) == pytest.approx(1 - 15 / 40)
    rate = replace(flat, model=Open(rate=0.0), warm_up_s=0.0, duration_s=None, stages=[Stage(10.0, 100.0)])
    assert remaining_share(rate, 5) == pytest.approx(0.75)


def delta(at: int, values_ns: Sequence[int], **changes: Any) -> Delta:
    buckets = sorted(Counter(values_ns).items())
    own = Histogram(
        count=len(values_ns),
        mean_s=sum(values_ns) / len(values_ns) / 1e9,
        min_s=min(values_ns) / 1e9,
        p50_s=quantile_seconds(buckets, 0.5) or 0.0,
        p90_s=quantile_seconds(buckets, 0.9) or 0.0,
        p99_s=quantile_seconds(buckets, 0.99) or 0.0,
        p999_s=quantile_seconds(buckets, 0.999) or 0.0,
        max_s=max(values_ns) / 1e9,
        buckets=buckets,
    )
    second = Second(at_s=at, users=2, intended=len(values_ns), ok=len(values_ns), engine_busy=0.5)
    return Delta(
        started_ns=1, second=second, latency=own, operations=[], intended=0, begun=0, late=0, unfinished=0,
        connections=Connections(), **changes,
    )  # fmt: skip


def test_percentiles_of_a_second_are_those_of_all_samples() -> None:
    dice = random.Random(1)
    samples = [[round(dice.expovariate(1 / 5e6)) for _ in range(500)], [round(dice.gauss(4e7, 1e6)) for _ in range(90)]]
    seconds = SharedSeconds()
    for name, values in zip("ab", samples, strict=True):
        seconds.add(name, delta(0, values))
    [merged] = seconds.take_new(["a", "b"])
    ordered = sorted(samples[0] + samples[1])
    assert merged.latency is not None
    assert merged.latency.p50_s * 1e9 == pytest.approx(ordered[294])
    assert merged.latency.p99_s * 1e9 == pytest.approx(ordered[584])
    assert merged.latency.max_s * 1e9 == pytest.approx(ordered[-1])
    assert (merged.users, merged.ok, merged.engine_busy) == (4, 590, 0.5)


def test_a_second_of_a_far_time_is_published_alone() -> None:
    seconds = SharedSeconds()
    seconds.add("a", delta(0, [1]))
    seconds.add("a", delta(10**15, [1]))
    assert [one.at_s for one in seconds.take_new(["a"])] == [0, 1e15]


def test_a_second_waits_for_slow_workers_and_is_published_once() -> None:
    seconds = SharedSeconds()
    seconds.add("a", delta(0, [1]))
    assert seconds.take_new(["a", "b"]) == []
    for at in (1, 2, 3):
        seconds.add("a", delta(at, [1]))
    # Worker b is silent: its seconds are published without it.
    assert [one.at_s for one in seconds.take_new(["a", "b"])] == [0]
    for at in range(4):
        seconds.add("b", delta(at, [2]))
    assert [(one.at_s, one.ok) for one in seconds.take_new(["a", "b"])] == [(1, 2), (2, 2), (3, 2)]
    assert [one.ok for one in seconds.all_seconds()] == [2, 2, 2, 2]
    # A worker that has ended is not waited for.
    seconds.add("a", delta(4, [1]))
    assert [one.at_s for one in seconds.take_new([])] == [4]


def test_a_plan_that_cannot_be_run_starts_no_worker(url: str) -> None:
    with pytest.raises(UsageProblem, match="at most"):
        run_workers(plan_for(url, model=Closed(vus=300_000)), parse_workers(["local:2"]), Watched())


def test_the_engine_names_its_deltas_only_for_a_share(url: str) -> None:
    engine = _core.Load(plan_for(url, duration_s=1.2).to_json())
    assert engine.wait(30)
    assert json.loads(engine.deltas()) == []
