"""Programs that break the process contract, each named after its fault."""

from __future__ import annotations

import os
import select
import sys
import threading
from pathlib import Path

import pytest

from mcpace.lab.clients.client_program import ClientProgram
from mcpace.lab.errors import ProgramDied, ProgramHung, ProgramRubbish, Unsupported
from mcpace.lab.processes.adapter_process import STDERR_TAIL
from mcpace.lab.processes.child_processes import run_child

READY = 'import sys, json, os, signal, time; print(json.dumps({"ready": True, "version": "1.0"}), flush=True)\n'
ANSWER = (
    'print(json.dumps({"op": "connect", "ok": True, "start_ns": 5, "end_ns": 9, "result": {"a": 1}}), flush=True)\n'
)
CONNECT = {"cmd": "connect"}
# Long enough that only a real hang gets there, where a hang isn't what is tested.
AMPLE_S = 30.0
SHORT_S = 0.3


def start(body: str, limit_s: float = AMPLE_S) -> ClientProgram:
    return ClientProgram.start([sys.executable, "-S", "-c", body], ready_limit_s=limit_s)


def gone(pid: int) -> bool:
    """Waits until a process has ended, which may take a moment after SIGKILL. A zombie counts as ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], AMPLE_S)[0])
    finally:
        os.close(handle)


def child_pid(program: ClientProgram) -> int:
    return int(program.send_command({"cmd": "pid"}, AMPLE_S).result["pid"])


def test_well_behaved() -> None:
    with start(READY + "sys.stdin.readline()\n" + ANSWER + "sys.stdin.read()") as program:
        answer = program.send_command(CONNECT, AMPLE_S)
    assert (program.version, answer.ok, answer.start_ns, answer.end_ns) == ("1.0", True, 5, 9)
    assert answer.result == {"a": 1}
    assert answer.error_kind is None


def test_failure_is_an_answer() -> None:
    body = 'sys.stdin.readline(); print(json.dumps({"op": "connect", "ok": False, "start_ns": None, "end_ns": None, '
    body += '"error": {"kind": "auth", "message": "no"}}), flush=True)'
    with start(READY + body) as program:
        answer = program.send_command(CONNECT, AMPLE_S)
    assert (answer.ok, answer.error_kind, answer.error_message, answer.start_ns) == (False, "auth", "no", 0)


def test_missing_program() -> None:
    with pytest.raises(ProgramDied, match="can't be started: No such file"):
        ClientProgram.start(["/nonexistent/python"])


def test_dies_before_it_is_ready() -> None:
    with pytest.raises(ProgramDied, match=r"exited with code 3 while 'ready'.*it is broken"):
        start("import sys; print('it is broken', file=sys.stderr); sys.exit(3)")


def test_dies_during_a_command() -> None:
    program = start(READY + "sys.stdin.readline(); print('out of luck', file=sys.stderr); os._exit(7)")
    with pytest.raises(ProgramDied, match=r"exited with code 7 while 'connect'.*out of luck"):
        program.send_command(CONNECT, AMPLE_S)


def test_is_killed_by_a_signal() -> None:
    program = start(READY + "sys.stdin.readline(); os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(ProgramDied, match="ended by SIGSEGV"):
        program.send_command(CONNECT, AMPLE_S)


def test_is_dead_when_the_command_comes() -> None:
    program = start(READY + "os._exit(4)")
    program._process.wait(AMPLE_S)
    with pytest.raises(ProgramDied):
        program.send_command(CONNECT, AMPLE_S)


def test_dies_while_its_child_holds_stdout_open() -> None:
    body = "import subprocess; subprocess.Popen(['sleep', '600']); sys.stdin.readline(); os._exit(5)"
    program = start(READY + body)
    with pytest.raises(ProgramDied, match="exited with code 5"):
        program.send_command(CONNECT, AMPLE_S)


def test_closes_its_stdout_and_lives_on() -> None:
    program = start(READY + "sys.stdin.readline(); os.close(1); time.sleep(600)")
    with pytest.raises(ProgramDied, match="closed its stdout"):
        program.send_command(CONNECT, AMPLE_S)
    assert gone(program._process.pid)


def test_exit_127_is_unsupported_with_its_reason() -> None:
    with pytest.raises(Unsupported, match=r"^no streamable HTTP before 1.8$"):
        start("import sys; print('no streamable HTTP before 1.8', file=sys.stderr); sys.exit(127)")


def test_hangs_before_it_is_ready() -> None:
    with pytest.raises(ProgramHung, match=r"no answer to 'ready' within 0.3 s"):
        start("import time; time.sleep(600)", SHORT_S)


def test_hangs_during_a_command_with_a_child() -> None:
    body = "import subprocess; child = subprocess.Popen(['sleep', '600']); sys.stdin.readline()\n"
    body += 'print(json.dumps({"op": "pid", "ok": True, "result": {"pid": child.pid}}), flush=True); time.sleep(600)'
    program = start(READY + body)
    child = child_pid(program)
    with pytest.raises(ProgramHung, match="no answer to 'connect'"):
        program.send_command(CONNECT, SHORT_S)
    assert gone(program._process.pid)
    assert gone(child)


@pytest.mark.parametrize(
    "line",
    [
        "Traceback!",
        "[1, 2]",
        "{}",
        '{"op": "list_tools", "ok": true}',
        '{"op": "connect", "ok": false}',
        '{"op": "connect"}',
        '{"op": "connect", "ok": true, "start_ns": 9, "end_ns": 5}',
        '{"op": "connect", "ok": true, "result": 5}',
    ],
)
def test_prints_rubbish(line: str) -> None:
    program = start(READY + f"sys.stdin.readline(); print({line!r}, flush=True); sys.stdin.read()")
    with pytest.raises(ProgramRubbish, match="something that is no answer"):
        program.send_command(CONNECT, AMPLE_S)
    assert gone(program._process.pid)


def test_prints_rubbish_before_it_is_ready() -> None:
    with pytest.raises(ProgramRubbish, match=r"'ready' with .*: 'hello'$"):
        start("import sys; print('hello', flush=True); sys.stdin.read()")


def test_an_endless_line_is_cut() -> None:
    program = start(READY + "sys.stdin.readline()\nwhile True: sys.stdout.write('x' * 65536)")
    with pytest.raises(ProgramRubbish) as caught:
        program.send_command(CONNECT, AMPLE_S)
    assert len(str(caught.value)) < 400


def test_floods_stderr() -> None:
    body = "sys.stdin.readline(); [sys.stderr.write('flood ' * 1000) for _ in range(2000)]; sys.stderr.write('END')\n"
    with start(READY + body + ANSWER + "sys.stdin.read()") as program:
        assert program.send_command(CONNECT, AMPLE_S).ok
    assert program.stderr_tail.endswith("END")
    assert len(program.stderr_tail) <= STDERR_TAIL


def test_close_ends_what_ignores_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpace.lab.processes.child_processes.end_group.__defaults__", (SHORT_S,))
    program = start("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY + "time.sleep(600)")
    program.close(SHORT_S)
    assert gone(program._process.pid)
    program.close()  # harmless


def test_nothing_is_left_behind() -> None:
    """No thread or descriptor is left after many starts."""
    with start(READY + "sys.stdin.read()"):
        pass
    threads, descriptors = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with start(READY + "sys.stdin.read()"):
            pass
    assert threading.active_count() == threads
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


def test_run_child_ends_the_whole_group_on_time_out(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    done = run_child(["sh", "-c", f"sleep 600 & echo $! > {pids}; wait"], 1.0)
    assert done.timed_out
    assert gone(int(pids.read_text()))


def test_run_child_reports_a_missing_command() -> None:
    done = run_child(["/nonexistent/uv"], AMPLE_S)
    assert done.code == 127 and "No such file" in done.stderr
