"""``mcpace servers`` as a user runs it, against scripted server programs that behave well and badly.

No figure is asserted that depends on how fast this machine is; that a stall of 40 ms vanishes is the exception, and it
is what the experiment itself compares.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.commands import COMMAND, end, run, start_command

ADAPTER = """
format = 1
name = "scripted"
title = "scripted servers"
[install]
kind = "own"
package = "mcpace"
[server]
command = ["{python}", "{adapter}/server.py"]
transports = ["http"]
modes = ["whole", "split", "liar", "mortal", "unbuilt", "never", "chatty"]
"""
SHORT = ("--vus", 4, "--duration", "1s", "--rounds", 2, "--warm-up", "0s")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Adapters for these tests."""
    folder = tmp_path / "adapters" / "scripted"
    folder.mkdir(parents=True)
    (folder / "adapter.toml").write_text(ADAPTER)
    (folder / "server.py").write_text((Path(__file__).parents[1] / "support" / "scripted_server.py").read_text())
    return {"MCPACE_ADAPTERS": str(folder.parent), "COLUMNS": "120"}


def cases(text: str) -> dict[str, dict[str, Any]]:
    return {case["subject"]["mode"]: case for case in json.loads(text)["cases"]}


def test_servers_are_compared_and_what_ran_is_told(tmp_path: Path, environment: dict[str, str]) -> None:
    ended = run("servers", "scripted:whole", *SHORT, "--cpus", 1, "--json", folder=tmp_path, environment=environment)
    assert ended.code == 0, ended.stderr
    told = json.loads(ended.stdout)
    common, (case,) = told["servers"], told["cases"]
    assert (told["schema"], told["kind"], told["partial"]) == ("mcpace.run/1", "servers", False)
    assert (common["workload"], common["rounds"], common["round_s"]) == ("echo", 2, 0.5)
    assert common["cap"]["cpus"] == 1
    assert common["floor"]["error"] is None
    assert common["floor"]["throughput_rps"] > 0
    assert case["errors"] == 0
    assert case["throughput_rps"] > 0
    assert case["by_tool"]["echo"]["ok"] == case["latency_s"]["count"]
    assert len(case["server"]["rounds"]) == 2
    assert case["server"]["cpu_s_per_call"] > 0
    assert case["rss_bytes"] > 1_000_000
    assert case["server"]["checked"] == ["echo", "greet", "double", "wait", "work", "payload"]
    assert (case["server"]["sdk_version"], case["server"]["revision"]) == ("1.2", "2025-06-18")
    assert case["findings"] == []


def test_what_goes_wrong_with_one_is_its_row_and_the_others_go_on(tmp_path: Path, environment: dict[str, str]) -> None:
    modes = ("whole", "liar", "mortal", "unbuilt", "never", "chatty")
    subjects = [f"scripted:{mode}" for mode in modes]
    ended = run("servers", *subjects, *SHORT, "--json", folder=tmp_path, environment=environment)
    assert ended.code == 0, ended.stderr
    told = cases(ended.stdout)
    assert told["whole"]["error"] is None
    assert told["whole"]["throughput_rps"] > 0
    assert told["liar"]["error"] == "double answers '63' to {\"n\": 21}, not '42'"
    assert "throughput_rps" not in told["liar"]
    assert "exited with code 9" in told["mortal"]["error"]
    assert "no such port on this machine" in told["unbuilt"]["error"]
    assert (told["never"]["unsupported"], told["never"]["error"]) == ("this version has no such mode", None)
    assert "listening soon" in told["chatty"]["error"]


def test_a_stall_of_two_writes_is_named_and_proven_and_one_write_is_not(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    words = ("servers", "scripted:split", "scripted:whole", *SHORT, "--fail-on", "delayed-ack", "--json")
    ended = run(*words, folder=tmp_path, environment=environment)
    assert ended.code == 1, ended.stderr
    told = cases(ended.stdout)
    (finding,) = told["split"]["findings"]
    assert (finding["code"], finding["confidence"]) == ("delayed-ack", "confirmed")
    assert "TCP_NODELAY" in finding["advice"]
    assert finding["context"]["quick_share"] < finding["context"]["share"] / 2
    assert told["whole"]["findings"] == []


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("unbuilt", "the program exited with code 1"),
        ("never", "this version has no such mode"),
        ("liar", "double answers"),
    ],
)
def test_where_no_server_can_be_measured_the_exit_code_says_so(
    mode: str, reason: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    ended = run("servers", f"scripted:{mode}", *SHORT, "--json", folder=tmp_path, environment=environment)
    assert ended.code == 3
    assert f"nothing could be measured: {reason}" in ended.stderr
    assert json.loads(ended.stdout)["cases"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nonesuch",), "unknown SDK 'nonesuch'"),
        (("scripted:wohle",), "did you mean whole"),
        (("scripted:whole", "scripted:whole"), "is named twice"),
        (("scripted", "--workload", "eco"), "did you mean echo"),
        (("scripted", "--vus", 5, "--rate", 5), "--vus and --rate are two kinds of load"),
        (("scripted", "--duration", "1s", "--rounds", 9), "too short to tell anything: 4.5s is the least"),
        (("scripted", "--cpus", 4096), "--cpus 4096 is more than"),
        (("scripted", "--memory", "lots"), "'lots' is no amount of memory"),
        (("scripted", "--session", "calls"), "unknown session 'calls'"),
        (("scripted", "--revision", "2025-06-19"), "unknown revision '2025-06-19'"),
        (("scripted", "--revision", "2026-07-28", "--session", "user"), "has no sessions"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    tmp_path: Path, environment: dict[str, str], words: tuple[object, ...], sentence: str
) -> None:
    ended = run("servers", *words, folder=tmp_path, environment=environment)
    assert ended.code == 2, ended.stderr
    assert sentence in ended.stderr.splitlines()[-1]


def test_ctrl_c_saves_what_was_measured_and_leaves_no_server(tmp_path: Path, environment: dict[str, str]) -> None:
    words = ("servers", "scripted:whole", "scripted:split", "--vus", 2, "--duration", "90s", "--rounds", 30, "--json")
    with start_command(*words, "--warm-up", "0s", folder=tmp_path, environment=environment) as process:
        server = _first_round(process.pid)
        process.send_signal(signal.SIGINT)
        ended = end(process)
        gone, _, _ = select.select([server], [], [], 30)
        os.close(server)
    assert ended.code == 130, ended.stderr
    told = json.loads(ended.stdout)
    assert told["partial"] is True
    assert [case["subject"]["mode"] for case in told["cases"]] == ["whole", "split"]
    assert told["cases"][0]["throughput_rps"] > 0
    assert gone


def test_stopped_servers_do_not_outlive_a_killed_mcpace(tmp_path: Path, environment: dict[str, str]) -> None:
    process = subprocess.Popen(
        [*COMMAND, "servers", "scripted:whole", "--vus=1", "--duration=90s", "--rounds=100", "--warm-up=0s"],
        cwd=tmp_path, env={**os.environ, **environment}, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        # Another's turn: it would see no end of its stdin.
        server = _first_round(process.pid, stopped=True)
    finally:
        process.kill()
        process.wait()
    gone, _, _ = select.select([server], [], [], 30)
    os.close(server)
    assert gone


def _first_round(pid: int, *, stopped: bool = False) -> int:
    """Waits until the first server has had some load, or is stopped after it.

    Returns a descriptor that reports its end.
    """
    program = f"""
import sys, time
from pathlib import Path
from mcpace.lab.processes import process_usage as usage
while True:
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\\0")
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError, IndexError):
            continue
        if parent == "{pid}" and b"--mode" in words and words[words.index(b"--mode") + 1] == b"whole":
            told = usage.read_usage(int(entry.name))
            # One thread at a time works in it: so much is more than the second that is left out.
            if told and (told.cpu_s > 1.5 or state == "T" and {stopped}):
                print(entry.name)
                sys.exit()
    time.sleep(0.02)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=90, check=True)
    return os.pidfd_open(int(done.stdout))
