"""Programs that mcpace starts as targets: real servers that listen, and programs that fail in each way."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpace import _core
from mcpace.lab import targets
from mcpace.lab.errors import LabError, ProgramDied, Unreachable, UsageProblem
from mcpace.lab.inside.running_process import RunningProcess
from mcpace.lab.processes.listening_sockets import listening_addresses
from mcpace.lab.processes.process_usage import process_tree
from mcpace.lab.progress import Silent
from mcpace.lab.servers import listening_program
from mcpace.lab.servers.started_target import start_target
from support.commands import COMMAND, Ended, run

AMPLE_S = 30.0
SIMPLE = f"serve:{COMMAND[0]} target simple"
"""One of mcpace's scripted servers, which picks a free port."""
LISTENS = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
"""
OWN_SERVER = """
from mcpace import MCPServer
server = MCPServer("own")

@server.tool()
def double(number: int = 2) -> int:
    return 2 * number
"""


def gone(pid: int) -> bool:
    """Waits until a process has ended. A zombie counts as ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], AMPLE_S)[0])
    finally:
        os.close(handle)


def tools_of(url: str) -> list[str]:
    client = _core.Client(url)
    try:
        client.connect()
        return [str(tool["name"]) for tool in client.list_tools()]
    finally:
        client.disconnect()


def python(body: str) -> str:
    return f'serve:{sys.executable} -S -c "{body}"'


@contextlib.contextmanager
def listening(*command: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A Python program that has printed its port."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        port = int(program.stdout.readline())
        try:
            yield program, port
        finally:
            program.kill()


@pytest.mark.parametrize(
    ("text", "command", "url", "server_object"),
    [
        ("serve:python app.py --port 1", ("python", "app.py", "--port", "1"), None, ""),
        ("serve:http://127.0.0.1:1/x python app.py", ("python", "app.py"), "http://127.0.0.1:1/x", ""),
        ("package.module:server", (), None, "package.module:server"),
        ("dir/my server.py:make", (), None, "dir/my server.py:make"),
        ("/abs/app.py:holder.mcp", (), None, "/abs/app.py:holder.mcp"),
    ],
)
def test_programs_are_targets(text: str, command: tuple[str, ...], url: str | None, server_object: str) -> None:
    target = targets.parse_target(text)
    assert target.program is not None
    assert (target.program.command, target.url, target.program.server_object) == (command, url, server_object)


@pytest.mark.parametrize(
    "text", ["localhost:8000", "serve:", "serve:http://h/mcp", "app.py:", ":mcp", "a b:c", "notion"]
)
def test_other_texts_are_no_programs(text: str) -> None:
    with pytest.raises(UsageProblem):
        targets.parse_target(text)


def test_a_file_alone_is_asked_for_its_server_object() -> None:
    with pytest.raises(UsageProblem, match=re.escape("write dir/app.py:SERVER, as in dir/app.py:mcp")):
        targets.parse_target("dir/app.py")


def test_the_secrets_of_a_command_are_not_shown() -> None:
    target = targets.parse_target("serve:http://127.0.0.1:1/mcp?key=PLANTED srv --token PLANTED")
    assert "PLANTED" not in target.name
    assert target.program is not None and target.program.command[-1] == "PLANTED"


def test_addresses_are_those_on_which_the_process_listens() -> None:
    with contextlib.ExitStack() as stack:
        four = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        everywhere = stack.enter_context(socket.create_server(("", 0)))
        stack.enter_context(socket.create_connection(four.getsockname()))
        ports = {four.getsockname()[1], everywhere.getsockname()[1]}
        if socket.has_ipv6:
            with contextlib.suppress(OSError):
                six = stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
                ports.add(six.getsockname()[1])
        found = listening_addresses([os.getpid()])
        assert {port for _, port in found} >= ports
        assert {host for host, _ in found} <= {"127.0.0.1", "::1"}
        with listening(sys.executable, "-c", LISTENS + "time.sleep(60)") as (_, port):
            assert ("127.0.0.1", port) not in listening_addresses([os.getpid()])


ON_IPV6_ONLY = """
import socket, sys, time
listener = socket.socket(socket.AF_INET6)
listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
listener.bind((sys.argv[1], int(sys.argv[2])))
listener.listen()
print(listener.getsockname()[1], flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("foreign", "own", "reached"),
    [
        # The kernel gives a connection to 127.0.0.1 to the socket with this address, and else to 0.0.0.0.
        ("127.0.0.1", "::", ["::1"]),
        ("0.0.0.0", "::", ["::1"]),
        ("0.0.0.0", "::1", ["::1"]),
        (None, "::", ["127.0.0.1", "::1"]),
    ],
)
def test_an_address_at_which_another_program_answers_is_no_address_of_the_program(
    foreign: str | None, own: str, reached: list[str]
) -> None:
    with socket.create_server((foreign or "127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        if foreign is None:
            other.close()
        with listening(sys.executable, "-S", "-c", ON_IPV6_ONLY, own, str(port)) as (program, _):
            assert listening_addresses([program.pid]) == [(host, port) for host in reached]


def test_an_address_in_another_network_namespace_is_not_reached() -> None:
    new = ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*new, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not make network namespaces")
    with listening(*new, sys.executable, "-S", "-c", LISTENS + "time.sleep(60)") as (program, _):
        assert listening_addresses([program.pid]) == []


def test_an_ipv4_address_in_a_socket_of_both_families_is_an_ipv4_address() -> None:
    with socket.socket(socket.AF_INET6) as listener:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(("::ffff:127.0.0.1", 0))
        listener.listen()
        assert ("127.0.0.1", listener.getsockname()[1]) in listening_addresses([os.getpid()])


@pytest.mark.parametrize(("first", "is_tried"), [("127.0.0.1", True), ("::1", False)])
def test_localhost_is_tried_only_where_it_leads_to_the_program(
    first: str, is_tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(host: str, port: int, **others: object) -> list[tuple[object, ...]]:
        assert host == "localhost"
        return [(None, None, None, "", (first, port, 0, 0) if ":" in first else (first, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    tried: list[str] = []

    def connect(url: str, limit_s: float) -> None:
        tried.append(url)
        if "localhost" in url or len(tried) == 10:
            return
        raise _core.ClientProblem("no MCP")

    command = [sys.executable, "-S", "-c", SILENT]
    with listening_program.ListeningProgram.start(command, connect, limit_s=AMPLE_S):
        pass
    assert any("//localhost:" in url for url in tried) is is_tried


def test_a_program_is_found_by_its_sockets_and_ended() -> None:
    with start_target(targets.parse_target(SIMPLE), Silent()) as started:
        assert started.url is not None and started.url.endswith("/mcp")
        assert started.program is None
        assert "greet" in tools_of(started.url)
    with pytest.raises(_core.ClientProblem):
        tools_of(started.url)


def test_a_server_object_is_served_by_its_own_sdk(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN_SERVER)
    with start_target(targets.parse_target(f"{file}:server"), Silent()) as started:
        assert started.url is not None and tools_of(started.url) == ["double"]


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        ("import sys; sys.exit('the key is missing')", ProgramDied, "exited with code 1.*the key is missing"),
        ("import time; time.sleep(60)", Unreachable, "listens on no TCP port"),
        (
            "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=0)",
            Unreachable,
            "no path of /mcp.*name the URL",
        ),
    ],
)
def test_a_program_without_endpoint_is_one_sentence(
    body: str, kind: type[LabError], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening_program, "SETTLE_S", 0.5)
    words = targets.parse_target(python(body)).program
    assert words is not None

    def connect(url: str, limit_s: float) -> None:
        tools_of(url)

    with pytest.raises(kind, match=says):
        listening_program.ListeningProgram.start(words.command, connect, url=None, env=None, limit_s=3.0)


SILENT = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
time.sleep(600)
"""


def test_the_time_limit_includes_addresses_that_do_not_answer() -> None:
    limits_s: list[float] = []

    def connect(url: str, limit_s: float) -> None:
        limits_s.append(limit_s)
        client = _core.Client(url, limit_s=limit_s)
        try:
            client.connect()
        finally:
            client.disconnect()

    with pytest.raises(Unreachable, match="no path of /mcp"):
        listening_program.ListeningProgram.start([sys.executable, "-S", "-c", SILENT], connect, limit_s=1.0)
    assert limits_s and max(limits_s) <= 1.0
    # The first path used the time up: none of the other ones was tried.
    assert len(limits_s) == 1


def test_the_exit_of_a_program_ends_the_search() -> None:
    tried: list[str] = []

    def connect(url: str, limit_s: float) -> None:
        tried.append(url)
        for pid in listening_pids(int(url.split(":")[2].split("/")[0])):
            os.kill(pid, signal.SIGKILL)
            assert gone(pid)
        tools_of(url)

    with pytest.raises(ProgramDied, match="SIGKILL"):
        listening_program.ListeningProgram.start([sys.executable, "-S", "-c", SILENT], connect, limit_s=AMPLE_S)
    assert len(tried) == 1


def test_a_program_that_does_not_exist_is_one_sentence() -> None:
    with (
        pytest.raises(ProgramDied, match="can't be started"),
        start_target(targets.parse_target("serve:/no/such/program"), Silent()),
    ):
        pass


def test_a_program_that_ignores_signals_is_killed() -> None:
    ignoring = "import signal; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; "
    body = ignoring + "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=0)"
    command = [sys.executable, "-S", "-c", body]
    program = listening_program.ListeningProgram.start(command, lambda url, limit_s: None)
    program.close(limit_s=0.1)
    assert gone(program.pid)
    assert program._process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("leader", ["waits", "exits at SIGINT", "dies"])
def test_a_server_outside_of_the_process_group_ends_with_the_program(leader: str, tmp_path: Path) -> None:
    note = tmp_path / "note"
    server = f"trap 'echo SIGTERM > {note}; exit' TERM; {shlex.join(COMMAND)} target simple & wait"
    words = f"trap {'exit' if leader == 'exits at SIGINT' else ':'} INT; setsid sh -c {shlex.quote(server)} & wait"
    with contextlib.ExitStack() as stack:
        if leader == "dies":
            stack.enter_context(pytest.raises(ProgramDied, match="SIGKILL"))
        started = stack.enter_context(start_target(targets.parse_target(f"serve:sh -c {shlex.quote(words)}"), Silent()))
        assert started.url is not None
        [pid] = listening_pids(int(started.url.split(":")[2].split("/")[0]))
        outside = os.getpgid(pid)
        if leader == "dies":
            os.kill(process_tree(outside)[outside].parent, signal.SIGKILL)
            raise Unreachable("a call failed")
    assert gone(pid)
    # Orphans of a program that died are killed. Others may end in order.
    assert note.exists() is (leader != "dies")


def test_a_daemon_that_a_program_starts_ends_with_it_and_other_children_stay(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    os.mkfifo(note)
    words = f"(setsid sh -c 'echo $$ > {note}; exec sleep 600' &); exec {shlex.join(COMMAND)} target simple"
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as other:
        with start_target(targets.parse_target(f"serve:sh -c {shlex.quote(words)}"), Silent()):
            daemon = int(note.read_text())
        try:
            assert gone(daemon)
            assert other.poll() is None
        finally:
            other.kill()


def test_an_address_that_another_program_has_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}/mcp"
        with (
            pytest.raises(UsageProblem, match="another program already listens"),
            start_target(targets.parse_target(f"serve:{url} {COMMAND[0]} target simple"), Silent()),
        ):
            pass


def test_the_death_of_a_program_explains_the_failure_of_the_experiment() -> None:
    program = targets.parse_target(SIMPLE)
    with pytest.raises(ProgramDied, match="SIGKILL"), start_target(program, Silent()) as started:
        assert started.url is not None
        [pid] = listening_pids(int(started.url.split(":")[2].split("/")[0]))
        os.kill(pid, signal.SIGKILL)
        raise Unreachable("a call failed")


def listening_pids(port: int) -> list[int]:
    """The processes that listen at a port."""
    pids = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdecimal()]
    return [pid for pid in pids if port in {own for _, own in listening_addresses([pid])}]


@pytest.mark.parametrize("command", ["measure", "explain", "load"])
def test_pid_needs_a_url_and_inside_needs_a_program(command: str, tmp_path: Path) -> None:
    for words, says in (
        (
            (command, "stdio:server", "--pid", os.getpid()),
            "--pid needs a target with a URL that the process serves; stdio:server has none",
        ),
        ((command, "http://127.0.0.1:9/mcp", "--inside"), "serve:COMMAND"),
        ((command, "http://127.0.0.1:9/mcp", "--pid", 2**22 + 1), "there is no process"),
    ):
        done = run(*words, folder=tmp_path)
        assert done.code == 2 and says in " ".join(done.stderr.split()), done.stderr


def test_only_own_processes_that_serve_the_target_are_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        with pytest.raises(UsageProblem, match="runs sleep, and only Python, Node"):
            RunningProcess(sleeper.pid, "http://127.0.0.1:9/mcp", print)
        sleeper.kill()
    with pytest.raises(UsageProblem, match="mcpace itself"):
        RunningProcess(os.getpid(), "http://127.0.0.1:9/mcp", print)
    with listening(sys.executable, "-c", LISTENS + "time.sleep(60)") as (program, port):
        with pytest.raises(UsageProblem, match=f"listens at port {port}, not at port 9"):
            RunningProcess(program.pid, "http://127.0.0.1:9/mcp", print)
        running = RunningProcess(program.pid, f"http://127.0.0.1:{port}/mcp", print)
        running.close()
    own = os.geteuid()
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            for user, says in ((own + 1, "belongs to another user"), (0, "runs sleep")):
                monkeypatch.setattr(os, "geteuid", lambda user=user: user)
                with pytest.raises(UsageProblem, match=says):
                    RunningProcess(other.pid, "http://127.0.0.1:9/mcp", print)
        finally:
            other.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into the processes of other users")
def test_root_looks_into_processes_of_other_users() -> None:
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("no Python that other users may run")
    words = [python, "-c", LISTENS + "time.sleep(60)"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, user="nobody", cwd="/") as program:
        try:
            assert program.stdout is not None
            running = RunningProcess(program.pid, f"http://127.0.0.1:{int(program.stdout.readline())}/mcp", print)
            running.close()
        finally:
            program.kill()


KEEPS_PORT = """
import socket, sys
from mcpace.cli.main import main
kept = socket.socket()
try:
    kept.bind(("127.0.0.1", int(sys.argv[1])))
except OSError as error:
    sys.exit(error.strerror)
sys.argv[1:] = ["target", "simple"]
main()
"""


def gate_commands(first: str, second: str, tmp_path: Path) -> Ended:
    words = ("--tool", "greet", "--args", '{"name": "x"}', "--trials", 8, "--tolerance", "1000%")
    return run("gate", second, "--base", first, *words, folder=tmp_path)


def test_two_commands_with_one_port_cannot_be_compared_in_turns(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    server = tmp_path / "server.py"
    server.write_text(KEEPS_PORT)
    command = f"serve:{shlex.join([sys.executable, str(server), str(port)])}"
    done = gate_commands(command, command, tmp_path)
    assert done.code == 2, done.stderr
    sentence = " ".join(done.stderr.split())
    for words in ("Address already in use", "give each one its own", "--baseline FILE"):
        assert words in sentence, sentence


def test_two_commands_with_a_port_each_are_compared(tmp_path: Path) -> None:
    done = gate_commands(SIMPLE, SIMPLE, tmp_path)
    assert done.code in (0, 1, 4), done.stderr
    assert "can't run beside" not in done.stderr


def test_a_program_that_listens_is_measured(tmp_path: Path) -> None:
    done = run(
        "measure", SIMPLE, "--tool", "greet", "--args", '{"name": "x"}', "--trials", 2, "--json", folder=tmp_path
    )
    assert done.code == 0, done.stderr
    cases = json.loads(done.stdout)["cases"]
    assert [case["operation"] for case in cases] == ["connect", "list", "call"]
    assert all(case["trials_s"] and case["target"] == SIMPLE for case in cases)
