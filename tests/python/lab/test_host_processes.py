"""Servers that hosts started: real processes of hosts that are killed, start two of each, or never reap.

Other programs of this user may run servers meanwhile, so each test looks at its own process ids.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpace.lab.errors import EnvironmentProblem, UsageProblem
from mcpace.lab.processes import host_processes, process_table
from mcpace.lab.processes.host_processes import ConfiguredCommand, end_servers, list_processes
from mcpace.lab.progress import Silent
from mcpace.report.model.processes import ServerProcess
from mcpace.report.model.run import Run
from mcpace.report.page.build import page_of
from mcpace.report.terminal import print_run
from mcpace.report.verdict import sentences
from support import commands

HOST = Path(__file__).parents[1] / "support" / "server_host.py"
LIMIT_S = 60
SERVER = """
from mcpace import MCPServer
mcp = MCPServer("shop")
mcp.run("stdio")
"""
IGNORES_THE_END = """
# A stand-in for a server that ignores the end of its input.
import signal
while True:
    signal.pause()
"""


class Host:
    """A running host and the process ids of its servers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], LIMIT_S)
        assert ready, "the host has started no server"
        self.servers: list[int] = json.loads(process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT_S)


@contextmanager
def host(mode: str, number: int, *command: str) -> Iterator[Host]:
    words = [sys.executable, str(HOST), mode, str(number), *command]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        made = Host(process)
        handles = [os.pidfd_open(pid) for pid in made.servers]
        try:
            yield made
        finally:
            made.kill()
            for handle in handles:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                os.close(handle)


def server(folder: Path, text: str = IGNORES_THE_END, name: str = "mcp_shop.py") -> list[str]:
    (folder / name).write_text(text)
    return [sys.executable, str(folder / name)]


def listed(*configurations: Path, pid: int | None = None) -> Run:
    return list_processes(configurations, pid, Silent())


def findings(run: Run, pids: list[int]) -> set[str]:
    assert run.processes is not None
    return {one.code for one in run.processes.findings if set(one.pids) & set(pids)}


def described(run: Run, pid: int) -> ServerProcess:
    assert run.processes is not None
    [one] = [one for one in run.processes.servers if one.pid == pid]
    return one


@pytest.mark.parametrize("mode", ["pipe", "socket"])
def test_a_server_whose_host_was_killed_is_orphaned_until_it_is_ended(tmp_path: Path, mode: str) -> None:
    with host(mode, 1, *server(tmp_path)) as made:
        [pid] = made.servers
        assert findings(listed(), [pid]) == set()
        assert end_servers([pid], listed()) == [], "a server with a host is never ended"
        made.kill()
        run = listed()
        assert findings(run, [pid]) == {"orphaned-server"}
        assert described(run, pid).parent != made.process.pid
        assert "mcpace processes --end" in " ".join(sentences(run))
        handle = os.pidfd_open(pid)
        assert end_servers([pid], run) == [pid]
        assert select.select([handle], [], [], LIMIT_S)[0], "the server runs on"
        os.close(handle)


def test_a_server_that_ends_with_its_input_is_no_orphan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_processes, "GRACE_S", LIMIT_S)  # a busy machine takes its time
    with host("answered", 1, *server(tmp_path, SERVER)) as made:
        made.kill()
        assert findings(listed(), made.servers) == set()


def test_two_of_each_are_a_doubled_start_of_one_host_only(tmp_path: Path) -> None:
    command = server(tmp_path)
    with host("pipe", 2, *command) as made, host("pipe", 1, *command) as other:
        run = listed()
        assert run.processes is not None
        [found] = [one for one in run.processes.findings if set(one.pids) & {*made.servers, *other.servers}]
        assert (found.code, found.pids) == ("doubled-start", made.servers)
        assert findings(listed(pid=other.process.pid), made.servers + other.servers) == set()


def test_a_server_behind_the_flight_recorder_is_one_server(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    # The command has no "mcp" in its name: only the configuration tells that it is a server.
    program, *arguments = server(tmp_path, SERVER, "shop.py")
    config.write_text(json.dumps({"mcpServers": {"shop": {"command": program, "args": arguments}}}))
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert commands.run("wrap", config, folder=tmp_path, environment=state).code == 0
    entry = json.loads(config.read_text())["mcpServers"]["shop"]
    with host("answered", 1, entry["command"], *entry["args"]) as made:
        run = listed(config, pid=made.process.pid)
        assert run.processes is not None
        assert [one.pid for one in run.processes.servers if one.parent == made.process.pid] == made.servers
        one = described(run, made.servers[0])
        assert (one.server, one.command) == ("shop", f"{program} {arguments[0]}")
        assert one.processes > 1, "the server runs below its recorder"
        assert findings(run, made.servers) == set()


def test_a_host_that_never_reaps_is_named(tmp_path: Path) -> None:
    program = tmp_path / "shop-server"
    program.symlink_to(sys.executable)
    config = tmp_path / "mcp.json"
    # Another program may run Python, too, and never reap it: python alone names no server.
    entries = {"shop": {"command": str(program), "args": []}, "other": {"command": sys.executable, "args": []}}
    config.write_text(json.dumps({"mcpServers": entries}))
    with host("unreaped", 1, *server(tmp_path)) as other:
        assert findings(listed(config), other.servers) == set()
    with host("unreaped", 2, str(program), *server(tmp_path)[1:]) as made:
        run = listed(config, pid=made.process.pid)
        assert run.processes is not None
        assert [(one.code, one.pids) for one in run.processes.findings] == [("never-reaped", made.servers)]
        assert all(one.has_ended and one.parent == made.process.pid for one in run.processes.servers)
        assert "has not read the exit code" in " ".join(sentences(run))


def test_a_server_is_described_by_its_configuration_and_without_secrets(tmp_path: Path) -> None:
    command = [*server(tmp_path, name="shop.py"), "--api-key", "s3cret", "https://u:p4ss@example.com/?token=t0ken"]
    config = tmp_path / "a b" / "mcp.json"
    config.parent.mkdir()
    entries = {
        "shop": {"command": command[0], "args": command[1:], "env": {"KEY": "${UNSET_VARIABLE}"}},
        "unset": {"command": "${UNSET_VARIABLE}"},
        "remote": {"url": "https://example.com/mcp"},
    }
    config.write_text(json.dumps({"mcpServers": entries}))
    with host("pipe", 1, *command) as made:
        [pid] = made.servers
        assert not any(one.pid == pid for one in listed().processes.servers), (
            "nothing names it without the configuration"
        )  # type: ignore[union-attr]
        run = listed(config, pid=made.process.pid)
    one = described(run, pid)
    assert (one.server, one.configuration, one.parent) == ("shop", str(config), made.process.pid)
    assert one.memory_bytes > 1_000_000 and one.processes == 1 and one.age_s < 3600
    text = run.to_json() + page_of(run).model_dump_json()
    text += "\n".join(line.plain for line in print_run.lines(run, 100, coloured=False))
    assert not [secret for secret in ("s3cret", "p4ss", "t0ken") if secret in text]
    assert "--api-key" in one.command


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["mcp-server-time", "--utc"], ["/v/bin/python", "/v/bin/mcp-server-time", "--utc"]),
        (["npx", "-y", "@a/server-b@1"], ["npm exec @a/server-b@1"]),
        (["npx", "-y", "@a/server-b", "."], ["node", "/usr/bin/npx", "-y", "@a/server-b", "."]),
        (["uvx", "mcp-server-git"], ["/root/bin/uv", "tool", "uvx", "mcp-server-git"]),
        (["server"], ["/opt/server"]),
    ],
)
def test_a_configured_command_is_found_again(words: list[str], command: list[str]) -> None:
    configured = ConfiguredCommand("b", Path("mcp.json"), tuple(words))
    assert configured.matches(command)
    assert not configured.matches([*command, "--other"])
    assert not configured.matches(["other", *command[1:]]) or len(command) > 1
    assert not configured.matches([])


@pytest.mark.parametrize(
    "words", [["grep", "mcp"], ["tail", "-f", "mcp.log"], ["mcpace", "serve"], ["vim", "mcp.json"]]
)
def test_programs_that_only_mention_mcp_are_no_servers(words: list[str]) -> None:
    assert not host_processes._has_mcp_name(words)


@pytest.mark.parametrize("has_name", [True, False])
def test_a_python_without_the_name_of_netlink_sees_a_closed_socket(
    has_name: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_name:
        monkeypatch.delattr(socket, "AF_NETLINK")
    ours, other = socket.socketpair()
    (tmp_path / "1" / "fd").mkdir(parents=True)
    (tmp_path / "1" / "fd" / "0").symlink_to(f"/proc/self/fd/{ours.fileno()}")
    with ours:
        with other:
            assert process_table.input_state(1, tmp_path) == "connected"
        assert process_table.input_state(1, tmp_path) == "closed"


def test_a_system_without_proc_and_a_missing_host_are_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="works on Linux"):
        process_table.read_process_table(tmp_path)
    with pytest.raises(UsageProblem, match="no running process 999999999"):
        listed(pid=999_999_999)


def test_the_command_asks_and_ends_nothing_unasked(tmp_path: Path) -> None:
    with host("pipe", 1, *server(tmp_path)) as made:
        [pid] = made.servers
        made.kill()
        refused = commands.run("processes", "--end", folder=tmp_path)
        assert refused.code == 2 and "stdin is no terminal" in refused.sentence()
        control, terminal = pty.openpty()
        with commands.start_command("processes", "--end", "--json", folder=tmp_path, stdin=terminal) as process:
            os.close(terminal)
            os.write(control, b"n\n")
            ended = commands.end(process)
        os.close(control)
        assert f"({pid})" in ended.stderr and "?" in ended.stderr
        run = Run.from_json(ended.stdout)
        assert run.processes is not None and run.processes.ended == []
        assert findings(run, [pid]) == {"orphaned-server"}
        failed = commands.run("processes", "--fail-on", "orphaned-server", "-q", folder=tmp_path)
        assert failed.code == 1 and "orphaned-server" in failed.stdout
        assert commands.run("processes", "--fail-on", "orphan", folder=tmp_path).code == 2
