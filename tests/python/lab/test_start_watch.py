"""The watch of the programs that run while servers start, over processes in a folder like /proc."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from mcpace.lab.check.start_watch import StartWatch

LIMIT_S = 10.0


def add_process(root: Path, pid: int, path: str, words: str, children: str = "") -> None:
    folder = root / str(pid)
    (folder / "task" / str(pid)).mkdir(parents=True)
    (folder / "exe").symlink_to(path)
    (folder / "statm").write_text("1 1 1")
    (folder / "task" / str(pid) / "children").write_text(children)
    (folder / "cmdline").write_bytes(words.encode())


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.002)


def test_a_process_without_a_command_for_a_moment_is_known_by_its_later_command(tmp_path: Path) -> None:
    (tmp_path / "self" / "task" / "1").mkdir(parents=True)
    (tmp_path / "self" / "task" / "1" / "children").write_text("20")
    add_process(tmp_path, 21, "/usr/bin/node", "node\0server.js\0")
    add_process(tmp_path, 20, "/usr/bin/node", "", "21")
    with StartWatch(tmp_path) as watch:
        wait_until(lambda: watch.program_start(20, time.monotonic_ns()) is not None)
        (tmp_path / "20" / "cmdline").write_bytes(b"node\0/usr/bin/npx\0-y\0a-server\0")

        def has_runner() -> bool:
            start = watch.program_start(20, time.monotonic_ns())
            return start is not None and start.runner == "npx"

        wait_until(has_runner)
        start = watch.program_start(20, time.monotonic_ns())
    assert start is not None and start.words == ("node", "server.js")
