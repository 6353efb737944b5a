"""Errors of the command line: one sentence, the right exit code, no lost results and no files left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from pydantic import ValidationError

from mcpace.report.model.run import Run, RunFormatError
from support.commands import (
    closed_port,
    end,
    flood,
    line,
    mcp_answer,
    read_request,
    reply,
    run,
    start_command,
    tcp_server,
)

DONE, HIT, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130
SECRETS = ("s3cret-bearer", "s3cret-query", "s3cret-password", "s3cret-cookie")


@pytest.mark.parametrize("words", [("report",), ("compare", "pipe.jsonl"), ("explain",), ("explain", "--spans")])
def test_a_pipe_is_no_file_to_read(words: tuple[str, ...], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    ended = run(*words, "pipe.jsonl", folder=tmp_path)
    assert (ended.code, ended.stdout) == (USAGE, "")
    assert ended.sentence().startswith("cannot read pipe.jsonl: it is a pipe; save its content in a file")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["clients", "pyhton@1.12.1", "--target", "profile:simple"], "did you mean python?"),
        (["clients", "python@1.12.1:lagacy", "--target", "profile:simple"], "did you mean legacy?"),
        (["clients", "python@one", "--target", "profile:simple"], "'one' is not a version"),
        (["measure", "profile:notoin"], "Did you mean profile:notion?"),
        (["measure", "nowhere"], "is not a target"),
        (["measure", "simple"], "Did you mean profile:simple?"),
        (["measure", "http://[::1"], "is not a URL"),
        (["measure", "http://127.0.0.1:99999/mcp"], "is not a URL"),
        (["measure", "profile:simple", "--tool", "gret"], "did you mean greet?"),
        (["measure", "profile:simple", "--fault", "tol=10ms"], "did you mean `tool=10ms`?"),
        (["measure", "profile:simple", "--fault", "tool=long"], "is not of the form"),
        (["measure", "stdio:true", "--fault", "tool=1ms"], "works on profiles only"),
        (["measure", "profile:simple", "--fail-on", "duplicat-request"], "did you mean duplicate-request or"),
        (["measure", "profile:simple", "--tool", "greet", "--args", "{bad"], "--args is not JSON"),
        (["measure", "profile:simple", "--tool", "greet", "--args", '{"n": NaN}'], "--args is not JSON"),
        (["measure", "profile:simple", "--tool", "greet", "--args", "[" * 20_000], "--args is not JSON"),
        (["measure", "profile:simple", "--tool", "greet", "--args", "[]"], "must be a JSON object"),
        (["measure", "here", "--config", "nothing.json"], "nothing.json: No such file"),
        (["measure", "profile:simple", "--cacert", "nothing.pem"], "cannot read the certificate nothing.pem"),
        (["measure", "profile:simple", "--revision", "2025"], "there is no revision"),
        (["measure", "http://127.0.0.1:1/mcp", "--auth", "bearer"], "MCPACE_TOKEN"),
        (["target", "simple", "--response", "xml"], "json or sse"),
        (["record", "--upstream", "nowhere"], "--upstream takes a URL or stdio:COMMAND"),
        (["report", "nothing.json"], "nothing.json: No such file"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_sentence(words: list[str], sentence: str, tmp_path: Path) -> None:
    ended = run(*words, folder=tmp_path, environment={"MCPACE_TOKEN": ""})
    assert (ended.code, ended.stdout) == (USAGE, "")
    assert sentence in ended.sentence()
    assert list(tmp_path.iterdir()) == []


def test_the_nearest_command_is_suggested(tmp_path: Path) -> None:
    ended = run("mesure", "profile:simple", folder=tmp_path)
    assert (ended.code, ended.stdout) == (USAGE, "")
    assert ended.stderr.endswith("No such command 'mesure'. Did you mean measure?\n")


@pytest.mark.parametrize(
    "words",
    [
        ["--trials", "0"],
        ["--trials", "x"],
        ["--hold", "-1s"],
        ["--hold", "soon"],
        ["--timeout", "0s"],
        ["--out", "."],
        ["--html", "."],
    ],
)
def test_values_out_of_range_are_usage_errors(words: list[str], tmp_path: Path) -> None:
    ended = run("measure", "profile:simple", *words, folder=tmp_path)
    assert (ended.code, ended.stdout) == (USAGE, "")
    assert words[0] in ended.stderr


def test_nobody_answers(tmp_path: Path) -> None:
    port = closed_port()
    ended = run("measure", f"http://127.0.0.1:{port}/mcp", "--json", folder=tmp_path)
    assert (ended.code, ended.stdout) == (UNREACHABLE, "")
    assert f"127.0.0.1:{port}" in ended.sentence()


NOT_MCP = {
    "says nothing": lambda connection: connection.recv(1),
    "a web page": lambda connection: connection.sendall(reply(b"<html>", "text/html")),
    "no HTTP": lambda connection: connection.sendall(b"SSH-2.0-server\r\n"),
    "hangs up": lambda connection: None,
    "half a reply": lambda connection: connection.sendall(reply(b"{" * 100)[:-50]),
    "invalid UTF-8": lambda connection: connection.sendall(reply(b'{"\xff": 1}')),
    "compressed": lambda connection: connection.sendall(reply(b"\x1f\x8b\x08")),
    "deep JSON": lambda connection: connection.sendall(reply(b"[" * 100_000)),
    "endless headers": lambda connection: flood(connection, b"HTTP/1.1 200 OK\r\n", b"x: y\r\n" * 1000),
    "an endless body": lambda connection: flood(
        connection, reply(b"")[:-2].replace(b"Length: 0", b"Length: 999999999999") + b"\r\n", b" " * 65_536
    ),
    "an endless event": lambda connection: flood(
        connection, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", b"data: x\r\n" * 1000
    ),
    "redirects in a circle": lambda connection: connection.sendall(
        reply(b"", status="307 Temporary Redirect")[:-2] + b"Location: /mcp\r\n\r\n"
    ),
}


@pytest.mark.parametrize("answer", NOT_MCP.values(), ids=NOT_MCP)
def test_what_is_no_mcp_server_is_said_within_the_limit(answer: object, tmp_path: Path) -> None:
    with tcp_server(answer) as url:
        ended = run("measure", url, "--timeout", "2s", "--json", folder=tmp_path)
    assert (ended.code, ended.stdout) == (UNREACHABLE, "")
    assert ended.sentence().startswith("connect")


def test_a_named_tool_whose_calls_all_fail_is_no_success(tmp_path: Path) -> None:
    words = ["measure", "profile:simple", "--trials", "2", "--json", "--tool", "echo", "--args"]
    ended = run(*words, '{"txet": "hi"}', folder=tmp_path)
    assert ended.code == UNREACHABLE
    assert "every call to echo failed: the tool answered with an error: invalid arguments: " in ended.sentence()
    # The other measurements are still in the output.
    assert [len(case["trials_s"]) for case in json.loads(ended.stdout)["cases"]] == [2, 2, 0]
    assert run(*words, '{"text": "hi"}', folder=tmp_path).code == DONE


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for words in (["target", "simple"], ["record", "--upstream", "http://127.0.0.1:1/", "--out", "r"]):
            ended = run(*words, "--port", port, folder=tmp_path)
            assert ended.code == UNREACHABLE
            assert f"127.0.0.1:{port}" in ended.sentence()


def test_json_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    ended = run("measure", "profile:simple", "--trials", "2", "--json", "--out", "run.json", folder=tmp_path)
    assert ended.code == DONE
    assert json.loads(ended.stdout) == json.loads((tmp_path / "run.json").read_text())


@pytest.mark.network
def test_fail_on_a_finding_exits_with_one(tmp_path: Path) -> None:
    words = ["clients", "python@1.12.1", "--target", "profile:notion", "--hold", "100ms", "--trials", "2", "--json"]
    ended = run(*words, "--fail-on", "duplicate-request", folder=tmp_path)
    found = {finding["code"] for case in json.loads(ended.stdout)["cases"] for finding in case["findings"]}
    assert "duplicate-request" in found
    assert ended.code == HIT
    assert run(*words, "--fail-on", "waits-for-get", folder=tmp_path).code == DONE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_was_measured(number: signal.Signals, tmp_path: Path) -> None:
    calls = 0
    reached, leave = threading.Event(), threading.Event()

    def answer(connection: socket.socket) -> None:
        nonlocal calls
        request = read_request(connection)
        calls += b'"tools/call"' in request
        if calls == 3:
            reached.set()
            leave.wait()
        connection.sendall(mcp_answer(request))

    with (
        tcp_server(answer, read=False) as url,
        start_command("measure", url, "--calls", "1", folder=tmp_path) as process,
    ):
        assert reached.wait(60)
        process.send_signal(number)
        ended = end(process)
        leave.set()
    assert ended.code == INTERRUPTED
    [saved] = tmp_path.glob("mcpace-measure-*.partial.json")
    assert saved.name in ended.sentence()
    run_so_far = json.loads(saved.read_text())
    assert run_so_far["partial"] is True
    assert {c["operation"]: len(c["trials_s"]) for c in run_so_far["cases"]} == {"connect": 3, "list": 3, "call": 2}


def test_ctrl_c_while_modules_are_imported_leaves_no_traceback(tmp_path: Path) -> None:
    slow = "import signal, sys\nprint('importing', file=sys.stderr, flush=True)\nsignal.pause()\n"
    (tmp_path / "typer.py").write_text(slow)
    with start_command("serve", "x", folder=tmp_path, environment={"PYTHONPATH": str(tmp_path)}) as process:
        assert line(process).strip() == "importing"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (-signal.SIGINT, "")


def test_a_recording_ends_well_on_ctrl_c(tmp_path: Path) -> None:
    with start_command(
        "record", "--upstream", f"http://127.0.0.1:{closed_port()}/", "--out", "r", folder=tmp_path
    ) as process:
        assert "point your client at" in line(process)
        process.send_signal(signal.SIGINT)
        ended = end(process)
    assert ended.code == DONE
    assert "recorded 0 exchanges in r" in ended.sentence()


def test_a_signal_to_the_stdio_recorder_ends_a_server_that_ignores_it(tmp_path: Path) -> None:
    server = "trap '' TERM INT HUP; echo $$ >&2; while :; do read line || sleep 0.1; done"
    (tmp_path / "server.sh").write_text(server)
    words = ["record", "--upstream", "stdio:sh server.sh", "--out", "r"]
    with start_command(*words, folder=tmp_path) as process:
        pid = int(line(process))
        process.send_signal(signal.SIGTERM)
        end(process)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_stdio_recording_that_a_signal_ends_is_explained(tmp_path: Path) -> None:
    server = 'read line; echo \'{"jsonrpc":"2.0","id":0,"result":{}}\'; while :; do sleep 0.05; done'
    (tmp_path / "server.sh").write_text(server)
    words = ["record", "--upstream", "stdio:sh server.sh", "--out", "r"]
    with start_command(*words, folder=tmp_path, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write('{"jsonrpc":"2.0","id":0,"method":"ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        ended = end(process)
    assert ended.code == INTERRUPTED
    assert "The client sent 1 request;" in ended.stderr and "mcpace explain r" in ended.stderr


def test_a_server_that_breaks_off_leaves_what_was_measured(tmp_path: Path) -> None:
    calls = 0

    def answer(connection: socket.socket) -> None:
        nonlocal calls
        request = read_request(connection)
        calls += b'"tools/call"' in request
        whole = mcp_answer(request)
        connection.sendall(whole if calls < 2 else whole[:-20])

    with tcp_server(answer, read=False) as url:
        ended = run("measure", url, "--trials", "2", "--calls", "1", "--json", folder=tmp_path)
    assert ended.code == DONE
    [call] = [case for case in json.loads(ended.stdout)["cases"] if case["operation"] == "call"]
    assert len(call["trials_s"]) == 1
    assert "broke off" in call["error"]


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    spare = tmp_path / "spare"
    spare.mkdir()
    words = ["measure", "profile:simple", "--trials", "1"]
    for option in ("--out", "--html"):
        ended = run(*words, option, "/dev/full", folder=tmp_path, environment={"TMPDIR": str(spare)})
        assert ended.code == UNREACHABLE
        assert "could not write /dev/full (No space left on device)" in ended.sentence()
        [kept] = spare.iterdir()
        assert kept.stat().st_size > 1000
        kept.unlink()
    folder = tmp_path / "recordings"
    folder.mkdir()
    (folder / "measure-profile-simple.jsonl.zst").symlink_to("/dev/full")
    ended = run(*words, "--recordings", folder, "--json", folder=tmp_path)
    assert json.loads(ended.stdout)["cases"]
    assert "No space left on device" in ended.sentence()


def test_each_target_has_a_recording_of_its_own(tmp_path: Path) -> None:
    for name in ("simple", "notion"):
        words = ["measure", f"profile:{name}", "--trials", "1", "--hold", "10ms", "--recordings", "kept"]
        assert run(*words, folder=tmp_path).code == DONE
    names = {file.name for file in (tmp_path / "kept").iterdir()}
    assert names == {"measure-profile-simple.jsonl.zst", "measure-profile-notion.jsonl.zst"}


def test_devices_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    assert run("measure", "profile:simple", "--trials", "1", "--out", "/dev/null", folder=tmp_path).code == DONE
    assert not Path("/dev/null").is_file()


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path) -> None:
    with start_command("measure", "profile:simple", "--trials", "1", folder=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        ended = subprocess.Popen.communicate(process, timeout=60)
    assert (process.returncode, ended[1]) == (DONE, "")


@pytest.mark.parametrize(
    "content", ["", "x", "[" * 100_000, '{"schema": "mcpace.run/2"}', '{"schema": "mcpace.run/1"}']
)
def test_what_is_no_run_is_not_reported(content: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(content)
    ended = run("report", "run.json", folder=tmp_path)
    assert (ended.code, ended.stdout) == (USAGE, "")
    assert "run.json is not a run" in ended.sentence()


def test_secrets_and_escapes_reach_no_output(tmp_path: Path) -> None:
    evil = "\x1b]0;title\x07<script>alert(1)</script>[bold]"

    def answer(connection: socket.socket) -> None:
        whole = mcp_answer(read_request(connection), tool=f"greet{evil}", text=evil)
        connection.sendall(whole.replace(b"\r\n", b"\r\nSet-Cookie: sid=s3cret-cookie\r\n", 1))

    with tcp_server(answer, read=False) as url:
        url = url.replace("://", "://user:s3cret-password@") + "?api_key=s3cret-query"
        words = ["measure", url, "--auth", "bearer", "--trials", "1", "--recordings", "kept", "--out", "run.json"]
        secret = {"MCPACE_TOKEN": "s3cret-bearer"}
        ended = run(*words, "--html", "page.html", folder=tmp_path, environment=secret)
    assert ended.code == DONE
    from mcpace import _core

    [kept] = (tmp_path / "kept").iterdir()
    events = json.dumps(_core.Recording.load(str(kept)).events())
    assert "[redacted " in events
    page = (tmp_path / "page.html").read_text()
    for text in (ended.stdout, ended.stderr, events, page, (tmp_path / "run.json").read_text()):
        assert not [secret for secret in SECRETS if secret in text]
        assert "\x1b" not in text
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"schema":"mcpace.run/1","cases":[' + "0," * 500_000 + "0]}", "not a run: at"),
        ('{"schema":"mcpace.run/1","versions":{' + '"a":0,' * 5 + '"b":0}}', "not a run: at"),
        ('{"schema":"mcpace.run/1","versions":{' + ",".join(f'"{n}":0' for n in range(5_000)) + "}}", "5,00. members"),
    ],
    ids=["list", "members", "many-members"],
)
def test_a_run_with_many_mistakes_is_refused_by_its_first(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(RunFormatError, match=says) as refused:
        Run.load(file)
    cause = refused.value.__cause__
    # Every mistake of a list would be kept, of several hundred bytes each.
    assert isinstance(cause, ValidationError) and cause.error_count() < 10_000


def test_a_run_without_end_is_not_read(tmp_path: Path) -> None:
    done = run("report", "/dev/zero", folder=tmp_path)
    assert (done.code, "larger than 64 MiB" in done.sentence()) == (2, True)


def test_a_package_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("from numpy import part")
    (tmp_path / "numpy" / "part.abi3.so").write_bytes(b"")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ended = run("demo", folder=tmp_path, environment={"PYTHONPATH": path})
    assert (ended.code, ended.stdout) == (UNREACHABLE, "")
    assert ended.sentence().startswith("numpy cannot be loaded (") and "part.abi3.so" in ended.sentence()
