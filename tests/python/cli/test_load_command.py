"""The command ``mcpace load`` against a profile, mcpace's own servers, and servers that misbehave.

Loads are short: tests check counts, never speed.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commands import COMMAND, Ended, closed_port, end, mcp_answer, read_request, run, start_command, tcp_server
from support.otlp_collector import stand_in_collector
from support.serve_process import serving

DONE, HIT, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130
SHORT = ("--duration", "1s", "--warm-up", "0s")
COUNTED = ("--duration", "60s", "--warm-up", "0s", "--max-calls")
"""Ends with so many calls, however slow the machine is."""
SERVER = """
    import itertools, os
    from mcpace import MCPServer

    server = MCPServer("loaded")
    calls = itertools.count(1)

    @server.tool()
    def echo(text: str) -> str:
        "Gives back."
        return text

    @server.tool()
    def keep(n: int, who: str, note: str) -> str:
        "Writes down what it was asked."
        with open("kept.txt", "a") as file:
            file.write(f"{n} {who} {note}\\n")
        return "kept"

    @server.tool()
    def refuse() -> str:
        "Always fails."
        raise ValueError("never <b>again</b>")

    @server.tool()
    def die() -> str:
        "Lives for a hundred calls."
        if next(calls) > 100:
            os._exit(9)
        return "alive"
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    with serving(folder, "server.py", "--port", "0", source=SERVER) as served:
        served.ready()
        yield f"http://127.0.0.1:{served.port}/mcp"


def loaded(*words: object, folder: Path, code: int = DONE, **environment: str) -> tuple[dict[str, Any], Ended]:
    """Runs a load and returns its case as JSON."""
    ended = run("load", *words, "--json", folder=folder, environment=environment)
    assert ended.code == code, ended.stderr
    document = json.loads(ended.stdout)
    [case] = document["cases"]
    accounted(case)
    return case, ended


def accounted(case: dict[str, Any]) -> None:
    """Checks that every begun call is counted exactly once."""
    operations = [*case["by_tool"].values(), *case["load"]["others"].values()]
    for operation in operations:
        assert operation["count"] == operation["ok"] + sum(operation["errors"].values())
    assert case["errors"] == sum(one["count"] - one["ok"] for one in case["by_tool"].values())


def test_the_json_is_what_other_programs_rely_on(tmp_path: Path) -> None:
    case, ended = loaded("profile:simple", "--vus", 3, *SHORT, "--threshold", "errors<=0", folder=tmp_path)
    assert ended.stderr == ""
    document = json.loads(ended.stdout)
    assert (document["schema"], document["kind"], document["partial"]) == ("mcpace.run/1", "load", False)
    assert (case["target"], case["operation"], case["tool"]) == ("profile:simple", "call", "echo")
    assert (case["errors"], case["error"]) == (0, None)
    for name in ("latency_s", "service_s"):
        told = case[name]
        assert list(told) == ["count", "mean", "min", "p50", "p90", "p99", "p999", "max"]
        assert 0 < told["min"] <= told["p50"] <= told["p90"] <= told["p99"] <= told["p999"] <= told["max"]
    echo = case["by_tool"]["echo"]
    assert echo["ok"] == case["latency_s"]["count"] == sum(count for _, count in echo["latency_buckets"])
    assert case["throughput_rps"] == pytest.approx(echo["ok"] / case["load"]["measured_s"])
    assert isinstance(case["saturated"], bool)
    # A call that was due when the measurement was over is in its second only.
    assert 0 <= sum(second["ok"] for second in case["seconds"]) - echo["ok"] <= 3
    assert case["load"]["model"] == {"kind": "closed", "vus": 3}
    assert case["load"]["thresholds"][0]["met"] is True


def test_arguments_are_made_anew_for_each_call(tmp_path: Path) -> None:
    with serving(tmp_path, "server.py", "--port", "0", source=SERVER) as served:
        served.ready()
        (tmp_path / "people.txt").write_text("Ada\nGrace\n")
        arguments = 'keep={"n": "{{counter}}", "who": "{{choice:people}}", "note": "r{{random(5,6)}}"}'
        words = ["--mix", "keep=1", "--args", arguments, "--data", "people=people.txt"]
        case, _ = loaded(f"http://127.0.0.1:{served.port}/mcp", "--vus", 2, *COUNTED, 40, *words, folder=tmp_path)
    kept = tmp_path / "kept.txt"
    lines = [line.split() for line in kept.read_text().splitlines()][1:]  # the first is the check's
    assert len(lines) == case["by_tool"]["keep"]["ok"] == 40
    numbers = [int(number) for number, _, _ in lines]
    assert len(set(numbers)) == 40, "a counter's number came twice"
    assert {who for _, who, _ in lines} == {"Ada", "Grace"}
    assert {note for _, _, note in lines} == {"r5", "r6"}


def test_the_tokens_of_a_result_are_counted_and_a_huge_one_is_named(url: str, tmp_path: Path) -> None:
    words = ["--mix", "echo=1", "--mix", "tools/list=1", "--vus", 1, *COUNTED, 6]
    for repeated, expected, codes in ((1, 2, []), (6_000, 12_000, ["huge-result"])):
        text = json.dumps({"text": "hello world" + " hello world" * (repeated - 1)})
        ended = run("load", url, *words, "--args", f"echo={text}", "--out", "load.json", folder=tmp_path)
        assert ended.code == DONE, ended.stderr
        [case] = json.loads((tmp_path / "load.json").read_text())["cases"]
        assert case["by_tool"]["echo"]["result_tokens"] == expected
        assert [found["code"] for found in case["findings"] if found["code"] == "huge-result"] == codes
        assert f"A result of echo takes {expected:,} tokens (o200k_base)." in " ".join(ended.stdout.split())


def test_a_mix_has_a_histogram_a_tool(url: str, tmp_path: Path) -> None:
    words = ["--mix", "echo=3", "--mix", "tools/list=1", "--args", 'echo={"text": "x"}']
    case, _ = loaded(url, "--vus", 2, *COUNTED, 400, *words, folder=tmp_path)
    assert list(case["by_tool"]) == ["echo"]
    listings = case["load"]["others"]["tools/list"]
    assert listings["kind"] == "list"
    assert 200 < case["by_tool"]["echo"]["ok"] < 400
    assert case["by_tool"]["echo"]["ok"] + listings["ok"] == 400


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("accept", ["both", "json", "sse"])
def test_every_revision_is_spoken(revision: str, accept: str, url: str, tmp_path: Path) -> None:
    words = ["--revision", revision, "--accept", accept]
    ended = run("load", url, "--vus", 2, *COUNTED, 50, *words, "--json", folder=tmp_path)
    if accept != "both" and ended.code != DONE:
        # The runtime holds earlier revisions to the letter: both kinds must be offered.
        assert "406" in ended.stderr, ended.stderr
        return
    [case] = json.loads(ended.stdout)["cases"]
    accounted(case)
    assert (case["errors"], case["by_tool"]["echo"]["ok"]) == (0, 50)
    assert case["subject"]["mode"] == revision
    assert ("initialize" in case["load"]["others"]) == (revision != "2026-07-28")


def test_a_session_a_call_is_counted_apart(url: str, tmp_path: Path) -> None:
    words = ["--session", "call", "--revision", "2025-11-25"]
    case, _ = loaded(url, "--vus", 2, *COUNTED, 30, *words, folder=tmp_path)
    others = {name: one["ok"] for name, one in case["load"]["others"].items()}
    assert case["by_tool"]["echo"]["ok"] == 30
    assert others["initialize"] == 30


def test_an_open_load_begins_every_call_that_is_due(url: str, tmp_path: Path) -> None:
    case, _ = loaded(url, "--rate", 50, "--duration", "2s", "--warm-up", "0s", folder=tmp_path)
    load = case["load"]
    assert load["intended"] == 100
    assert load["begun"] + load["dropped"] == 100
    assert load["begun"] == case["by_tool"]["echo"]["count"] + load["unfinished"]


def test_stages_ramp_users(url: str, tmp_path: Path) -> None:
    case, _ = loaded(url, "--stages", "1s:4,1s:8", "--warm-up", "0s", "--think", "10ms", folder=tmp_path)
    users = [second["users"] for second in case["seconds"][:2]]
    assert 1 < users[0] <= 5
    assert 5 <= users[1] <= 8
    assert case["load"]["model"]["stages"] == [{"duration_s": 1.0, "to": 4.0}, {"duration_s": 1.0, "to": 8.0}]


def test_the_warm_up_is_shown_and_left_out(url: str, tmp_path: Path) -> None:
    case, _ = loaded(url, "--rate", 50, "--duration", "1s", "--warm-up", "1s", folder=tmp_path)
    assert case["load"]["intended"] == 50
    assert [second["warm_up"] for second in case["seconds"]][:2] == [True, False]
    assert case["seconds"][0]["ok"] > 0


def test_over_stdio_each_user_has_a_process(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(textwrap.dedent(SERVER))
    target = f"stdio:{COMMAND[0]} serve server.py --transport stdio"
    case, _ = loaded(target, "--vus", 2, *COUNTED, 20, folder=tmp_path)
    assert (case["errors"], case["by_tool"]["echo"]["ok"]) == (0, 20)
    assert case["load"]["connections"]["opened"] == 2


@pytest.mark.parametrize("profile", ["github", "notion"])
def test_authorization_goes_with_the_load(profile: str, tmp_path: Path) -> None:
    words = ["--hold", "0s", "--mix", "echo=1"]
    case, ended = loaded(f"profile:{profile}", "--vus", 2, *COUNTED, 10, *words, folder=tmp_path)
    assert (case["errors"], case["by_tool"]["echo"]["ok"]) == (0, 10)
    assert "Bearer" not in ended.stdout


def test_secrets_reach_the_server_and_nobody_else(tmp_path: Path) -> None:
    sent: list[bool] = []
    wanted = (b"x-key: s3cret-key", b"authorization: bearer s3cret-token")

    def answer(connection: socket.socket) -> None:
        request = read_request(connection)
        head = request.split(b"\r\n\r\n")[0].lower()
        if b'"tools/call"' in request:
            sent.append(all(part in head for part in wanted))
        connection.sendall(mcp_answer(request))

    words = ["--header", "X-Key: $LOAD_KEY", "--bearer", "LOAD_TOKEN", "--out", "run.json"]
    with tcp_server(answer, read=False) as place:
        ended = run(
            "load", place, "--vus", 1, *COUNTED, 3, *words, folder=tmp_path,
            environment={"LOAD_KEY": "s3cret-key", "LOAD_TOKEN": "s3cret-token"},
        )  # fmt: skip
    assert ended.code == DONE, ended.stderr
    assert sent == [True] * 4  # the check's, and the load's three
    for text in (ended.stdout, ended.stderr, (tmp_path / "run.json").read_text()):
        assert "s3cret" not in text


def test_a_threshold_that_is_not_met_is_told_with_its_distance(url: str, tmp_path: Path) -> None:
    limits = ["--threshold", "p99<1us", "--threshold", "errors<0.1%", "--threshold", "echo:rps>1"]
    ended = run("load", url, "--vus", 2, *COUNTED, 50, *limits, folder=tmp_path)
    assert ended.code == HIT
    assert ended.sentence().startswith("threshold p99<1us is not met: it was ")
    assert "beyond the limit" in ended.sentence()
    assert "1 of 3 thresholds not met: p99<1us." in " ".join(ended.stdout.split())


def test_errors_are_counted_as_what_they_are(tmp_path: Path) -> None:
    replies = 0

    def answer(connection: socket.socket) -> None:
        nonlocal replies
        request = read_request(connection)
        whole = mcp_answer(request, tool="echo")
        if b'"tools/call"' in request:
            replies += 1
            if replies % 4 == 2:
                whole = whole.replace(b'"id": ', b'"id": 9')
            elif replies % 4 == 3:
                whole = whole.replace(b'"content"', b'"isError":true,"content"').replace(b"Length: ", b"Length: 1")
                head, _, body = whole.partition(b"\r\n\r\n")
                length = str(len(body)).encode()
                lines = [b"Content-Length: " + length if b"Length" in line else line for line in head.split(b"\r\n")]
                whole = b"\r\n".join(lines) + b"\r\n\r\n" + body
            elif replies % 4 == 0:
                whole = whole[:-20]
        connection.sendall(whole)

    with tcp_server(answer, read=False) as place:
        words = ["--vus", 1, *COUNTED, 16, "--timeout", "2s"]
        case, _ = loaded(place, *words, "--threshold", "errors<=99", folder=tmp_path)
    errors = case["by_tool"]["echo"]["errors"]
    assert errors.get("tool_error", 0) >= 3
    assert errors.get("not_mcp", 0) + errors.get("reset", 0) >= 3
    assert case["by_tool"]["echo"]["ok"] >= 3
    assert case["by_tool"]["echo"]["count"] == 16


def test_a_target_that_dies_leaves_what_was_measured(tmp_path: Path) -> None:
    with serving(tmp_path, "server.py", "--port", "0", source=SERVER) as served:
        served.ready()
        words = ["--mix", "die=1", "--vus", 2, "--duration", "3s", "--warm-up", "0s", "--out", "run.json"]
        ended = run("load", f"http://127.0.0.1:{served.port}/mcp", *words, folder=tmp_path)
    assert ended.code == DONE, ended.stderr
    [case] = json.loads((tmp_path / "run.json").read_text())["cases"]
    accounted(case)
    assert case["by_tool"]["die"]["ok"] == 99  # and the check's one
    assert set(case["by_tool"]["die"]["errors"]) <= {"connect", "reset", "session_lost"}
    assert case["errors"] > 0
    told = " ".join(ended.stdout.split())
    assert "No call succeeded after second 0." in told
    assert "no connection" in told


def test_a_target_that_is_gone_after_the_check_is_unreachable(tmp_path: Path) -> None:
    calls = 0

    def answer(connection: socket.socket) -> None:
        nonlocal calls
        request = read_request(connection)
        calls += b'"tools/call"' in request
        if calls <= 1:
            connection.sendall(mcp_answer(request, tool="echo"))

    with tcp_server(answer, read=False) as place:
        ended = run("load", place, "--vus", 1, *SHORT, "--revision", "2025-06-18", folder=tmp_path)
    assert ended.code == UNREACHABLE
    assert "nothing could be measured: " in ended.stderr


def test_ctrl_c_saves_what_was_measured(tmp_path: Path) -> None:
    under_way = threading.Event()
    calls = 0

    def answer(connection: socket.socket) -> None:
        nonlocal calls
        request = read_request(connection)
        calls += b'"tools/call"' in request
        if calls > 20:
            under_way.set()
        connection.sendall(mcp_answer(request, tool="echo"))

    with (
        tcp_server(answer, read=False) as place,
        start_command("load", place, "--vus", 1, "--duration", "60s", "--warm-up", "0s", folder=tmp_path) as process,
    ):
        assert under_way.wait(60)
        process.send_signal(signal.SIGINT)
        ended = end(process)
    assert ended.code == INTERRUPTED
    assert ended.stdout.startswith("Interrupted")
    [saved] = tmp_path.glob("mcpace-load-*.partial.json")
    document = json.loads(saved.read_text())
    assert document["partial"] is True
    [case] = document["cases"]
    accounted(case)
    assert case["by_tool"]["echo"]["ok"] >= 19
    assert case["load"]["ended"] == "stopped"


def test_ctrl_c_in_the_warm_up_says_that_nothing_was_measured(tmp_path: Path) -> None:
    under_way = threading.Event()
    calls = 0

    def answer(connection: socket.socket) -> None:
        nonlocal calls
        request = read_request(connection)
        calls += b'"tools/call"' in request
        if calls > 20:
            under_way.set()
        connection.sendall(mcp_answer(request, tool="echo"))

    words = ["--vus", 1, "--duration", "60s", "--warm-up", "60s"]
    with tcp_server(answer, read=False) as place, start_command("load", place, *words, folder=tmp_path) as process:
        assert under_way.wait(60)
        process.send_signal(signal.SIGINT)
        ended = end(process)
    assert ended.code == INTERRUPTED
    assert "was stopped before anything was measured." in " ".join(ended.stdout.split())


def test_a_report_that_nobody_reads_costs_no_measurement(tmp_path: Path) -> None:
    """Ctrl-C while stdout blocks: the load had no end before, and no ``--out`` names a file."""
    command = [*COMMAND, "load", "profile:simple", "--vus", "1", *SHORT, "--json"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    # Its first byte is there: the pipe is full then, or soon is.
    assert process.stdout.read(1) == "{"
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    process.stdout.close()
    assert process.wait(60) == INTERRUPTED, said
    [saved] = tmp_path.glob("mcpace-load-*.json")
    assert f"run saved in {saved.name}" in said
    [case] = json.loads(saved.read_text())["cases"]
    assert case["by_tool"]["echo"]["ok"] > 0


def test_a_full_stdout_costs_no_measurement(tmp_path: Path) -> None:
    words = ["load", "profile:simple", "--vus", "1", *COUNTED, "20"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *words], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == UNREACHABLE
    [saved] = tmp_path.glob("mcpace-load-*.json")
    assert f"run saved in {saved.name}" in done.stderr
    assert "No space left on device" in done.stderr


def test_what_can_not_be_called_is_said_before_the_load(url: str, tmp_path: Path) -> None:
    refused = run("load", url, "--mix", "refuse=1", folder=tmp_path)
    assert refused.code == UNREACHABLE
    assert "the tool refuse answers {} with an error" in refused.sentence()
    nobody = run("load", f"http://127.0.0.1:{closed_port()}/mcp", folder=tmp_path)
    assert nobody.code == UNREACHABLE
    assert "could not connect" in nobody.sentence()
    unknown = run("load", url, "--mix", "eco=1", folder=tmp_path)
    assert unknown.code == USAGE
    assert "did you mean echo?" in unknown.sentence()


def test_little_is_loaded_before_the_first_request(tmp_path: Path) -> None:
    """The target never answers, so only modules needed before the first request are loaded."""
    command = [sys.executable, "-X", "importtime", "-m", "mcpace", "load", f"http://127.0.0.1:{closed_port()}/mcp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == UNREACHABLE
    modules = set(re.findall(r"^import time: .*\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "mcpace.lab.load.check" in modules
    late = ("rich", "numpy", "mcpace.report.model.run", "mcpace.report.terminal.print_run", "mcpace.lab.load.engine")
    assert [name for name in late if name in modules] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "there is no TARGET"),
        (["profile:simple", "--vus", "1", "--rate", "1"], "give one of the two"),
        (["profile:simple", "--stages", "1s:1", "--duration", "1s"], "give one of the two"),
        (["profile:simple", "--args", 'echo={"text": "{{when}}"}'], "there is no template {{when}}"),
        (["profile:simple", "--args", 'echo={"text": "{{choice:x}}"}'], "nothing to choose from"),
        (["profile:simple", "--threshold", "eco:p99<1s"], "did you mean echo?"),
        (["profile:simple", "--session", "user", "--revision", "2026-07-28"], "has no sessions"),
        (["profile:simple", "--vus", "1000000"], "at most 100000 users"),
        (["profile:simple", "--bearer", "s3cret-token"], "none of that name is set"),
        (["stdio:cat", "--header", "X-Key: s3cret-token"], "needs a target with a URL"),
        (["profile:simple", "--scenario", "none.toml"], "cannot read the scenario none.toml"),
        (["profile:simple", "--replay", "none.zst"], "there is no file none.zst"),
        (["profile:simple", "--otlp", "localhost"], "is not a collector's URL"),
        (["https://127.0.0.1:1/mcp", "--cacert", "/dev/null"], "there is no PEM certificate in it"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(words: list[str], said: str, tmp_path: Path) -> None:
    ended = run("load", *words, folder=tmp_path)
    assert (ended.code, ended.stdout) == (USAGE, "")
    assert said in ended.sentence()
    assert "s3cret" not in ended.stderr


def test_a_scenario_is_run(url: str, tmp_path: Path) -> None:
    (tmp_path / "load.toml").write_text(
        f"target = '{url}'\nvus = 2\nduration = '1s'\nwarm-up = 0\nmax-calls = 50\nthreshold = ['errors<=0']\n"
        "[args.echo]\ntext = 'from a file'\n"
    )
    case, ended = loaded("--scenario", "load.toml", "--vus", 3, folder=tmp_path)
    assert case["load"]["model"]["vus"] == 3
    assert case["by_tool"]["echo"]["ok"] == 50
    assert json.loads(ended.stdout)["options"]["arguments"] == {"echo": '{"text": "from a file"}'}


def test_a_recording_is_sent_again_in_its_order(url: str, tmp_path: Path) -> None:
    first = run(
        "measure", "profile:simple", "--tool", "echo", "--args", '{"text": "kept"}', "--trials", 1, "--calls", 1,
        "--recordings", "kept", folder=tmp_path,
    )  # fmt: skip
    assert first.code == DONE, first.stderr
    asked: list[str] = []

    def answer(connection: socket.socket) -> None:
        request = read_request(connection)
        message = json.loads(request.partition(b"\r\n\r\n")[2] or b"{}")
        asked.append(message.get("method", ""))
        if message.get("method") == "tools/call":
            assert message["params"] == {"name": "echo", "arguments": {"text": "kept"}}
        connection.sendall(mcp_answer(request, tool="echo"))

    words = ["--replay", "kept/measure-profile-simple.jsonl.zst", "--revision", "2025-06-18"]
    with tcp_server(answer, read=False) as place:
        case, _ = loaded(place, "--vus", 1, *COUNTED, 20, *words, folder=tmp_path)
    assert {name: one["ok"] for name, one in case["by_tool"].items()} == {"tools/list": 10, "echo": 10}
    sent = [method for method in asked if method.startswith("tools/")]
    assert sent == ["tools/list", "tools/call"] * 10


def test_a_terminal_shows_how_it_goes(url: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    seen = b""
    with started_on_terminal(theirs, "load", url, "--vus", 2, "--duration", "2s", folder=tmp_path):
        while b"calls/s" not in seen:
            part = os.read(ours, 65_536)
            assert part, seen
            seen += part
    os.close(ours)
    assert "user" in seen.decode(errors="replace")


def started_on_terminal(stderr: int, *words: object, folder: Path) -> Any:
    """Starts the command with a terminal as its stderr."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)],
        cwd=folder,
        env={**os.environ, "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,
    )
    os.close(stderr)
    return process


def test_metrics_go_where_they_are_asked_for(url: str, tmp_path: Path) -> None:
    with stand_in_collector() as (collector, taken):
        words = ["--prometheus", "load.prom", "--otlp", collector]
        case, ended = loaded(url, "--vus", 2, *COUNTED, 20, *words, folder=tmp_path)
    assert ended.stderr == ""
    assert f'mcpace_load_requests_total{{operation="echo",target="{url}"}} 20.0' in (tmp_path / "load.prom").read_text()
    assert case["by_tool"]["echo"]["ok"] == 20
    assert len(taken) == 1


def test_a_collector_that_is_not_there_costs_nothing(url: str, tmp_path: Path) -> None:
    words = ["--otlp", f"http://127.0.0.1:{closed_port()}/v1/metrics"]
    _, ended = loaded(url, "--vus", 2, *COUNTED, 20, *words, folder=tmp_path)
    assert "the collector at --otlp did not take the metrics" in ended.stderr


def test_a_file_of_metrics_that_can_not_be_written_is_told(url: str, tmp_path: Path) -> None:
    words = ["--prometheus", "nowhere/load.prom"]
    _, ended = loaded(url, "--vus", 2, *COUNTED, 20, *words, folder=tmp_path, code=UNREACHABLE)
    assert "could not write the metrics to nowhere/load.prom" in ended.stderr
