"""``mcpace explain FOLDER``: all recordings of a folder, each in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from test_explain_recording import healthy, looping, written

from mcpace.lab.explain import folder_run
from mcpace.lab.explain.folder_run import Summarizers, explain_folder
from mcpace.lab.explain.recording_run import explain_recording
from mcpace.lab.explain.recording_summary import summarize_recording
from mcpace.lab.progress import Silent
from mcpace.report.words.answers import sentences
from support.commands import end, start_command
from support.commands import run as mcpace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three recordings, one of them below another folder, and two files that are none."""
    place = tmp_path / "recordings"
    (place / "deep").mkdir(parents=True)
    looping(place / "loop.jsonl")
    healthy(place / "healthy.jsonl")
    looping(place / "deep" / "again.jsonl")
    (place / "words.jsonl").write_text("nonsense")
    (place / "cut.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfdgarbage")
    (place / "notes.txt").write_text("no recording")
    return place


def answers(printed: str) -> dict[str, list[dict[str, Any]]]:
    run = json.loads(printed)
    return {
        one["question"]: [dict(zip(one["columns"], row, strict=True)) for row in one["rows"]] for one in run["answers"]
    }


def test_each_recording_has_a_row_and_all_findings_are_summed(folder: Path, tmp_path: Path) -> None:
    ended = mcpace("explain", folder, "--json", folder=tmp_path)
    assert (ended.code, ended.stderr) == (0, "")
    found = answers(ended.stdout)
    by_name = {row["recording"]: row for row in found["recordings"]}
    assert list(by_name) == [*sorted(["loop.jsonl", str(Path("deep", "again.jsonl"))]), "healthy.jsonl"]
    # The figures are those of each recording alone.
    for name, row in by_name.items():
        cases = explain_recording(folder / name).cases
        trials = [seconds for case in cases if case.operation == "call" for seconds in case.trials_s]
        assert row["calls"] == len(trials)
        assert row["p50_ns"] == (round(trials[0] * 1e9) if trials else None)
        codes = {finding.code: finding.total_requests for case in cases for finding in case.findings}
        assert (row["code"], row["requests"]) == next(iter(codes.items()), (None, None))
    [loop] = found["costs"]
    assert (loop["code"], loop["recordings"]) == ("get-loop", 2)
    assert loop["requests"] == 2 * by_name["loop.jsonl"]["requests"] > 0
    unread = {one["name"]: one["reason"] for one in json.loads(ended.stdout)["unread"]}
    assert set(unread) == {"words.jsonl", "cut.jsonl.zst"}
    assert all("not a recording" in reason and str(tmp_path) not in reason for reason in unread.values())


def test_the_median_is_that_of_the_tool_that_is_called_most(tmp_path: Path) -> None:
    events: list[tuple[float, dict[str, Any]]] = []
    for number, (tool, took) in enumerate([("a", 90), ("b", 5), ("b", 7), ("b", 20), ("c", 1)], start=1):
        start = {"call-start": {"call": number, "operation": "call", "tool": tool}}
        events += [(100.0 * number, start), (100.0 * number + took, {"call-end": {"call": number, "outcome": "ok"}})]
    summary = summarize_recording(str(written(tmp_path / "calls.jsonl", events)))
    assert (summary["calls"], summary["tool"], summary["p50_ns"]) == (5, "b", 7_000_000)


def test_requests_of_tools_are_counted_by_their_method(tmp_path: Path) -> None:
    words = ("--trials", 2, "--calls", 2, "--hold", "20ms", "--recordings", tmp_path)
    assert mcpace("measure", "profile:notion", *words, folder=tmp_path).code == 0
    [row] = answers(mcpace("explain", tmp_path, "--json", folder=tmp_path).stdout)["recordings"]
    facts = explain_recording(tmp_path / row["recording"]).recording
    assert facts is not None
    [called] = [one for one in facts.methods if one.method == "tools/call"]
    assert (row["calls"], row["tool"]) == (called.requests, called.name) == (4, "greet")
    assert called.median_s is not None and row["p50_ns"] == round(called.median_s * 1e9)


def test_the_tables_fit_on_80_columns_and_a_finding_sets_the_exit_code(folder: Path, tmp_path: Path) -> None:
    (folder / "x\x1b[31m.jsonl").write_bytes((folder / "healthy.jsonl").read_bytes())
    out = tmp_path / "run.json"
    ended = mcpace("explain", folder, "--out", out, "--html", tmp_path / "page.html", folder=tmp_path)
    assert ended.code == 0 and max(map(len, ended.stdout.splitlines())) <= 80
    assert "4 recordings with 2 calls explained." in ended.stdout
    assert "2 recordings could not be read: cut.jsonl.zst and words.jsonl." in ended.stdout
    assert re.search(r"loop\.jsonl +0 +– +get-loop +8 requests", ended.stdout)
    assert "\x1b" not in ended.stdout and "x[31m.jsonl" in ended.stdout
    assert "Findings of all recordings" in (tmp_path / "page.html").read_text()
    assert mcpace("report", out, folder=tmp_path).stdout == ended.stdout
    assert mcpace("explain", folder, "--fail-on", "get-loop", folder=tmp_path).code == 1
    assert mcpace("explain", folder, "--fail-on", "client-time-out", folder=tmp_path).code == 0


def test_recordings_that_were_cut_off_and_rows_that_were_left_out_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        path = looping(tmp_path / f"{name}.jsonl")
        if name == "c":
            path.write_bytes(path.read_bytes()[:-20])
    run = explain_folder(tmp_path, Silent())
    assert sentences(run)[0] == "3 recordings with 0 calls explained. 1 recording was cut off."
    monkeypatch.setattr(folder_run, "MOST_ROWS", 2)
    assert sentences(explain_folder(tmp_path, Silent()))[0].startswith("More than 2 recordings with ")


def test_a_long_path_does_not_displace_the_reason(tmp_path: Path) -> None:
    path = tmp_path / ("d" * 200) / ("e" * 200) / "none.jsonl"
    with Summarizers(1) as summarizers:
        [summary] = summarizers.summarize([path])
    assert summary["error"].startswith("No such file")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("none",), "none has no recordings"),
        (("bad",), "none of the recordings in bad could be read; a.jsonl: not a recording"),
        (("bad", "--beside", "bad/a.jsonl"), "--beside belongs to one recording or a live target; bad is a folder"),
        (("bad", "--inside"), "--inside belongs to one recording or a live target"),
    ],
)
def test_bad_input_is_one_sentence(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.jsonl").write_text("nonsense")
    ended = mcpace("explain", *words, folder=tmp_path)
    assert (ended.code, ended.stdout) == (2, "")
    assert sentence in ended.sentence()


DYING = """
import json, os, sys
for line in sys.stdin:
    if "loop" in line:
        os.kill(os.getpid(), 9)
    findings = []
    print(json.dumps({"calls": 1, "tool": None, "p50_ns": 5, "is_cut_off": False, "findings": findings}), flush=True)
"""


def test_a_process_that_dies_takes_one_recording_with_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    monkeypatch.setattr(folder_run, "PROGRAM", [folder_run.PROGRAM[0], str(tmp_path / "dying.py")])
    run = explain_folder(folder, Silent())
    assert [(one.name, one.reason) for one in run.unread] == [
        ("loop.jsonl", "the process that read it was ended by SIGKILL")
    ]
    assert len(run.answers[0].rows) == 4


def test_no_process_is_left(folder: Path, tmp_path: Path) -> None:
    with Summarizers(2) as summarizers:
        assert len(list(summarizers.summarize([folder / "loop.jsonl"] * 6))) == 6
        children = list(summarizers._started)
        assert 1 <= len(children) <= 2 and all(child.poll() is None for child in children)
    assert [child.returncode for child in children] == [0] * len(children)


STUCK = """
import os, sys, time
for line in sys.stdin:
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{os.getpid()}\\n")
    os.read(os.open(os.environ["FIFO"], os.O_RDONLY), 1)
"""


def test_ctrl_c_ends_the_processes_at_once(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "if 'mcpace.lab.explain.recording_summary' in sys.orig_argv:\n"
        f"    exec({STUCK!r})\n"
    )
    environment = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
        "PIDS": str(tmp_path / "pids"),
        "FIFO": str(tmp_path / "fifo"),
    }
    with start_command("explain", folder, folder=tmp_path, environment=environment) as process:
        # Opens when a process reads, which is stuck from then on.
        writer = os.open(tmp_path / "fifo", os.O_WRONLY)
        process.send_signal(signal.SIGINT)
        ended = end(process)
        os.close(writer)
    assert (ended.code, ended.stdout) == (130, "")
    assert ended.sentence() == "interrupted"
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
