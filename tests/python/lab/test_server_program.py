"""Server programs that break the process contract, each named after its fault; and one that keeps it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcpace.lab.errors import ProgramDied, ProgramHung, ProgramRubbish, Unsupported
from mcpace.lab.servers.server_program import ServerProgram

BEGIN = "import json, os, signal, sys, time\n"
READY = (
    BEGIN + 'told = {"ready": True, "sdk": "toy", "version": "1.0", "pid": os.getpid(), '
    '"url": "http://127.0.0.1:9/mcp", "workers": 2, "notes": ["slow"]}\nprint(json.dumps(told), flush=True)\n'
)
# Long enough that only a real hang gets there, where a hang isn't what is tested.
AMPLE_S = 30.0
SHORT_S = 0.3

# Starts a server and tells its id, then hangs: what is to be killed.
HOLDER = """
import sys
from mcpace.lab.servers.server_program import ServerProgram
server = ServerProgram.start(sys.argv[1:], mode="json")
print(server.pid, flush=True)
sys.stdin.read()
"""


def start(body: str, limit_s: float = AMPLE_S, **options: object) -> ServerProgram:
    command = [sys.executable, "-S", "-c", body]
    return ServerProgram.start(command, mode="json", ready_limit_s=limit_s, **options)  # type: ignore[arg-type]


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


def test_says_where_it_is_and_ends_with_its_stdin() -> None:
    with start(READY + "sys.stdin.read()") as server:
        assert (server.ready.sdk, server.ready.version, server.ready.workers) == ("toy", "1.0", 2)
        assert server.ready.notes == ("slow",)
        assert server.url == "http://127.0.0.1:9/mcp"
        assert server.ready.pid == server.pid
        assert server.exit_error() is None
    assert server._process.returncode == 0
    assert gone(server.pid)


def test_gets_its_options_and_its_environment(tmp_path: Path) -> None:
    body = READY.replace(
        '"notes": ["slow"]', '"notes": [*sys.argv[1:], os.environ["SHOP_API"], os.environ["NO_PROXY"]]'
    )
    with start(body + "sys.stdin.read()", state="stateful", port=7, env={"SHOP_API": "here"}) as server:
        *options, api, past_proxies = server.ready.notes
    assert options == ["--host", "127.0.0.1", "--port", "7", "--mode", "json", "--state", "stateful"]
    assert api == "here"
    assert "127.0.0.1" in past_proxies


def test_started_through_another_command() -> None:
    with start(READY + "sys.stdin.read()", prefix=["env", "A=B"]) as server:
        assert server.ready.pid == server.pid


@pytest.mark.parametrize(
    "line",
    [
        "listening on 8000",
        '{"ready": false}',
        '{"ready": true}',
        '{"ready": true, "sdk": "x", "version": "1", "pid": "many", "url": "http://h/"}',
        '{"ready": true, "sdk": "x", "version": "1", "pid": 1, "url": "ftp://h/"}',
        '{"ready": true, "sdk": "x", "version": "1", "pid": 1, "url": "http://h/", "notes": 5}',
        "[1]",
    ],
)
def test_says_rubbish_in_the_place_of_where_it_is(line: str) -> None:
    with pytest.raises(ProgramRubbish, match="'ready' with something that is no answer"):
        start(BEGIN + f"print({line!r}, flush=True); sys.stdin.read()")


def test_cannot_do_that() -> None:
    with pytest.raises(Unsupported, match="no mode json here"):
        start("import sys; print('no mode json here', file=sys.stderr); sys.exit(127)")


def test_finds_its_port_taken() -> None:
    with pytest.raises(ProgramDied, match=r"exited with code 1 while 'ready' was waiting; .*port 7 is taken"):
        start("import sys; print('port 7 is taken', file=sys.stderr); sys.exit(1)")


def test_never_listens() -> None:
    with pytest.raises(ProgramHung, match=r"no answer to 'ready' within 0\.3 s"):
        start("import sys; sys.stdin.read()", SHORT_S)


def test_dies_under_load() -> None:
    server = start(READY + "print('out of luck', file=sys.stderr, flush=True); os.kill(os.getpid(), signal.SIGKILL)")
    assert gone(server.pid)
    problem = server.exit_error()
    assert isinstance(problem, ProgramDied)
    assert "was ended by SIGKILL" in str(problem)
    assert "out of luck" in str(problem)
    server.close()


def test_talks_on_and_on() -> None:
    """Output after the ready line is read, so that the program isn't blocked, and is dropped."""
    body = READY + (
        "sys.stdin.readline()\nfor _ in range(2_000): print('x' * 1_000)\n"
        "print('all of it', file=sys.stderr, flush=True); os.close(1); sys.stdin.read()"
    )
    with start(body) as server:
        server._stdin.write(b"go\n")
        server._stdin.flush()
        reader = server._threads[0]
        reader.join(AMPLE_S)
        assert not reader.is_alive()
        # That it has ended is all that is left.
        assert server._lines.get_nowait() is None
        assert server._lines.empty()


def test_ignores_its_stdin_s_end_and_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpace.lab.processes.child_processes.end_group.__defaults__", (SHORT_S,))
    server = start(BEGIN + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY + "signal.pause()")
    server.close(SHORT_S)
    assert server._process.returncode == -signal.SIGKILL
    assert gone(server.pid)


def test_leaves_no_child_behind() -> None:
    body = BEGIN + "child = os.fork()\nif not child:\n    signal.pause()\n" + READY.replace('["slow"]', "[str(child)]")
    with start(body + "sys.stdin.read()") as server:
        child = int(server.ready.notes[0])
    assert gone(child)


def test_ends_when_whoever_started_it_is_killed() -> None:
    """The system closes the server's stdin when its parent dies."""
    command = [sys.executable, "-c", HOLDER, sys.executable, "-S", "-c", READY + "sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        pid = int(holder.stdout.readline())
        handle = os.pidfd_open(pid)
        holder.kill()
    assert select.select([handle], [], [], AMPLE_S)[0]
    os.close(handle)
