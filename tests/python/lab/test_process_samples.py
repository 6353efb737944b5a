"""Samples of processes: their values, their end, and adding them to a recording."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpace import _core
from mcpace.lab.processes import process_samples
from mcpace.lab.processes.process_samples import ProcessSamples, read_sample

STAT = "7 (a (b) c) S 1 7 7 0 -1 0 0 0 0 0 25 5 100 100 20 0 3 0 99 1000 12 0\n"


def proc(tmp_path: Path, text: str) -> Path:
    (tmp_path / "7").mkdir(exist_ok=True)
    (tmp_path / "7" / "stat").write_text(text)
    return tmp_path


def recording(tmp_path: Path) -> _core.Recording:
    file = tmp_path / "empty.jsonl"
    head = {"instrument": "recorder", "started": "", "mcpace": "0.1.0", "upstream": ""}
    file.write_text(json.dumps({"format": "mcpace.recording/1", **head}) + "\n")
    return _core.Recording.load(str(file))


def test_a_process_is_read_whatever_its_name(tmp_path: Path) -> None:
    sample = read_sample(7, proc(tmp_path, STAT))
    assert sample is not None
    assert sample[1:] == (30 * process_samples.NANOS_PER_TICK, 12 * process_samples.PAGE, 3)


@pytest.mark.parametrize("text", ["", "7 (a) S 1", STAT.replace(" S ", " Z ")])
def test_a_process_that_has_ended_gives_none(tmp_path: Path, text: str) -> None:
    assert read_sample(7, proc(tmp_path, text)) is None
    assert read_sample(8, tmp_path) is None


def test_samples_end_with_the_process_and_go_into_a_recording(tmp_path: Path) -> None:
    program = "import sys; print('ready', flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    # The kernel counts the memory of a program that has just begun with a delay.
    assert child.stdout.readline() == b"ready\n"
    with ProcessSamples(period_s=60) as samples:
        samples.watch_process("server", child.pid)
        samples.watch_process("client", os.getpid())
        samples.sample_all()
        child.communicate()
        samples.sample_all()
    whole = recording(tmp_path)
    samples.add_to(whole)
    events = [event["event"]["process-sample"] for event in whole.events()]
    assert [e["of"] for e in events].count("server") == 3
    assert [e["of"] for e in events].count("client") == 4
    assert all(event["resident"] > 0 and event["threads"] > 0 for event in events)


def test_a_long_watch_keeps_its_first_and_last_and_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_samples, "MOST_SAMPLES", 10)
    root = proc(tmp_path, STAT)
    samples = ProcessSamples(proc=root)
    samples.watch_process("server", 7)
    for threads in range(4, 40):
        proc(tmp_path, STAT.replace(" 3 0 99", f" {threads} 0 99"))
        samples.sample_all()
    kept = samples._watched[0].samples
    assert len(kept) <= 10
    assert (kept[0][3], kept[-1][3]) == (3, 39)


def test_a_side_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(_core.UsageProblem, match="no side is called"):
        recording(tmp_path).add_samples("nobody", 1, [])


def test_a_recording_is_not_its_own_gateway(tmp_path: Path) -> None:
    whole = recording(tmp_path)
    with pytest.raises(_core.UsageProblem, match="both before and behind"):
        whole.explained(behind=whole)
    assert whole.explained(behind=recording(tmp_path)).findings == []


def test_recordings_stand_side_by_side(tmp_path: Path) -> None:
    recording(tmp_path).save(str(tmp_path / "a"))
    recording(tmp_path).save(str(tmp_path / "b"))
    assert len(_core.Recording.beside([str(tmp_path / "a"), str(tmp_path / "b")])) == 0
    with pytest.raises(_core.UsageProblem, match="no recording"):
        _core.Recording.beside([])
