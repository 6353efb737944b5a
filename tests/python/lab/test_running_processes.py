"""Programs of Node.js and Java that run already are sampled and left as they were."""

from __future__ import annotations

import json
import random
import select
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from mcpace import _core
from mcpace.lab.errors import UsageProblem
from mcpace.lab.inside import node_inspector
from mcpace.lab.inside.running_process import RunningProcess, check_process
from mcpace.lab.processes.listening_sockets import listening_addresses
from mcpace.lab.processes.process_usage import process_tree

SUPPORT = Path(__file__).parent.parent / "support"
SERVER = str(SUPPORT / "plain_server.mjs")
JAVA_SERVER = str(SUPPORT / "java" / "PlainServer.java")
LIMIT_S = 60.0
CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "burn"}}).encode()


def program_of(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@contextmanager
def started(*words: str, processes: int = 1) -> Iterator[tuple[int, str]]:
    """The id and the URL of a server whose processes print its port each."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        try:
            assert program.stdout is not None
            readable, _, _ = select.select([program.stdout], [], [], LIMIT_S)
            assert readable, "the server said no port"
            [port] = {int(program.stdout.readline()) for _ in range(processes)}
            yield program.pid, f"http://127.0.0.1:{port}/mcp"
        finally:
            program.kill()


def free_ports(number: int) -> int:
    """The first of some free ports in a row, of those that no program gets by chance."""
    while True:
        first = random.randrange(10_000, 30_000)
        with suppress(OSError), ExitStack() as held:
            for port in range(first, first + number):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first


def call(url: str) -> None:
    urllib.request.urlopen(url, CALL, timeout=LIMIT_S).close()


def sampled_functions(running: RunningProcess) -> set[str]:
    recording = _core.SpanReceiver().stop()
    running.add_to(recording)
    seen = [event["event"]["stack-seen"] for event in recording.events() if "stack-seen" in event["event"]]
    return {frame["function"] for stack in seen for frame in stack["frames"]}


@pytest.mark.parametrize("option", ["--inspect-port=0", "--inspect=0"])
def test_a_program_of_node_is_sampled_and_its_inspector_left_as_it_was(option: str) -> None:
    with started(program_of("node"), option, SERVER) as (pid, url):
        before = set(listening_addresses([pid]))
        running = RunningProcess(pid, url, print)
        assert len(listening_addresses([pid])) == 2, "the inspector is open, and so is the port of MCP"
        call(url)
        running.close()
        assert set(listening_addresses([pid])) == before
        call(url)
    assert any("burn" in name for name in sampled_functions(running))


def test_the_workers_of_a_cluster_are_sampled_each_at_a_port_of_its_own() -> None:
    # A cluster counts the ports of its workers up, and refuses 0.
    option = f"--inspect-port={free_ports(3)}"
    with started(program_of("node"), option, SERVER, "cluster", processes=2) as (pid, url):
        workers = [one for one in process_tree(pid) if one != pid]
        assert len(workers) == 2
        before = set(listening_addresses(workers))
        running = RunningProcess(pid, url, print)
        assert len(set(listening_addresses(workers)) - before) == 2
        for _ in range(4):
            call(url)
        running.close()
        assert set(listening_addresses(workers)) == before
        assert set(process_tree(pid)) == {pid, *workers}, "each worker still runs"
    assert any("burn" in name for name in sampled_functions(running))


def test_of_workers_that_share_a_port_one_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    # Workers of a cluster have the same port where no option gives the first one.
    monkeypatch.setattr(node_inspector, "USUAL_PORT", free_ports(1))
    with started(program_of("node"), SERVER, "cluster", processes=2) as (pid, url):
        found = check_process(pid, url)
    assert (len(found.node), found.left_out) == (1, 1)


def test_an_inspector_whose_port_is_taken_is_not_opened() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with started(program_of("node"), f"--inspect-port={port}", SERVER) as (pid, url):
            with pytest.raises(UsageProblem, match=f"another program uses port {port}"):
                RunningProcess(pid, url, print)
            call(url)


def test_a_program_named_node_without_a_handler_gets_no_signal(tmp_path: Path) -> None:
    other = shutil.copy(program_of("sleep"), tmp_path / "node")
    with subprocess.Popen([other, "60"]) as program:
        try:
            with pytest.raises(UsageProblem, match="can't open its inspector"):
                RunningProcess(program.pid, "http://127.0.0.1:9/mcp", print)
            assert program.poll() is None
        finally:
            program.kill()


def test_a_program_of_java_is_recorded_and_no_recording_goes_on() -> None:
    jcmd = program_of("jcmd")
    with started(program_of("java"), JAVA_SERVER) as (pid, url):
        running = RunningProcess(pid, url, print)
        for _ in range(10):
            call(url)
        running.pause()
        running.resume()
        call(url)
        running.close()
        check = subprocess.run([jcmd, str(pid), "JFR.check"], capture_output=True, text=True, timeout=30, check=True)
        assert "No available recordings" in check.stdout
        call(url)
    assert any("burn" in name for name in sampled_functions(running))


def test_a_virtual_machine_that_accepts_no_commands_is_told() -> None:
    program_of("jcmd")  # a JDK starts the file with the source
    with started(program_of("java"), "-XX:+DisableAttachMechanism", JAVA_SERVER) as (pid, url):
        with pytest.raises(UsageProblem, match="accepts no jcmd"):
            RunningProcess(pid, url, print)
        call(url)
