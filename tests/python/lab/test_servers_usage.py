"""Processor time and memory of process trees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mcpace.lab.processes import process_usage
from mcpace.lab.processes.process_usage import UsageWatch, read_usage

# A child that works for 0.3 s of processor time, holds 64 MiB, tells, and waits.
CHILD = """
import sys, time
held = bytearray(64 << 20)
while time.process_time() < 0.3: pass
print("done", flush=True)
sys.stdin.read()
"""
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {CHILD!r}])
print("reaped", flush=True)
sys.stdin.read()
"""


def test_a_tree_is_its_children_too_also_when_they_have_ended() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        with UsageWatch(parent.pid) as watch:
            assert parent.stdout.readline() == "done\n"
            both = read_usage(parent.pid)
            assert both is not None
            assert both.processes == 2
            assert both.cpu_s >= 0.28
            assert both.rss_bytes >= 64 << 20
        assert watch.cpu_s is not None
        assert 0.2 <= watch.cpu_s <= both.cpu_s
        assert watch.rss_bytes is not None
        assert watch.rss_bytes >= 64 << 20
        parent.stdin.close()
        assert parent.stdout.readline() == "reaped\n"
    assert read_usage(parent.pid) is None


def test_a_process_that_has_gone_has_no_usage() -> None:
    done = subprocess.Popen([sys.executable, "-c", "pass"])
    done.wait()
    with UsageWatch(done.pid) as watch:
        pass
    assert (watch.cpu_s, watch.rss_bytes) == (None, None)


def write(proc: Path, pid: int, name: str, parent: int, *, state: str = "S", ticks: int = 0, pages: int = 0) -> None:
    (proc / str(pid)).mkdir(parents=True)
    fields = [state, parent, 1, 1, 0, -1, 0, 0, 0, 0, 0, ticks, 1, 2, 3, 20, 0, 1, 0, 99, 4096, pages]
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) {' '.join(map(str, fields))} 0 0\n")


def test_names_may_hold_anything_and_zombies_count_for_nothing(tmp_path: Path) -> None:
    write(tmp_path, 10, "a) S 99 (b", 1, ticks=94, pages=5)
    write(tmp_path, 11, "worker", 10, ticks=94, pages=7)
    write(tmp_path, 12, "gone", 10, state="Z", ticks=900)
    write(tmp_path, 13, "stranger", 1, ticks=900, pages=900)
    (tmp_path / "self").mkdir()
    (tmp_path / "14").mkdir()
    found = read_usage(10, tmp_path)
    assert found == process_usage.Usage(
        cpu_s=200 / os.sysconf("SC_CLK_TCK"), rss_bytes=12 * process_usage.PAGE, processes=2
    )
    assert read_usage(12, tmp_path) is None
    assert read_usage(10, tmp_path / "nowhere") is None
