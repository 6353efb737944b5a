"""Explanation of all recordings of a folder, with all processors: a summary of each, and the costs of all findings.

Design constraint: each processor has one process, which reads one recording at a time, and only summaries are kept. A
process that dies takes the recording with it that it read, and no other.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import is_unicode
from mcpace.lab.machine import new_run
from mcpace.lab.processes.adapter_process import signal_name
from mcpace.lab.progress import Progress
from mcpace.lab.recording_files import find_recordings
from mcpace.report.model.answer import Answer, Cell, UnreadRecording
from mcpace.report.model.base import LARGEST
from mcpace.report.model.run import Run
from mcpace.system.process_groups import kill_group, start_group
from mcpace.system.processors import usable_cores

PROGRAM = [sys.executable, "-P", "-m", "mcpace.lab.explain.recording_summary"]
COLUMNS = ["recording", "calls", "tool", "p50_ns", "code", "time_ns", "requests", "is_cut_off"]
COSTS = ["code", "recordings", "calls", "time_ns", "per_call_ns", "requests", "bytes", "most_at"]
MOST_ROWS = 10_000
LIMIT_S = 5.0
"""Time in which a process that has no more input ends."""


def explain_folder(folder: Path, progress: Progress) -> Run:
    """Explains all recordings of a folder.

    Raises :class:`UsageProblem` where there are none, or none can be read.
    """
    paths = find_recordings([folder])
    run = new_run("recordings", {"folder": folder.resolve().name})
    rows: list[tuple[bool, tuple[Any, ...], list[Cell]]] = []
    """Whether there are findings, the costliest one, and the row, of each recording."""
    costs: dict[str, _Cost] = {}
    progress.begin(len(paths))
    with Summarizers(min(len(usable_cores()), len(paths))) as summarizers:
        for path, summary in zip(paths, summarizers.summarize(paths), strict=True):
            name = str(path.relative_to(folder))
            progress.step(name)
            if "error" in summary:
                run.unread.append(UnreadRecording(name=_text(name), reason=summary["error"]))
                continue
            found = summary["findings"]
            for code, *figures in found:
                costs.setdefault(code, _Cost()).add(name, *figures)
            cost = max(((time, requests, code) for code, _, time, requests, _ in found), default=None)
            time_ns, requests, code = cost or (None, None, None)
            figures = [
                summary["calls"],
                summary["tool"],
                summary["p50_ns"],
                code,
                _bounded(time_ns),
                _bounded(requests),
            ]
            rows.append((cost is not None, cost or (), [_text(name), *figures, summary["is_cut_off"]]))
    if not rows:
        raise UsageProblem(
            f"none of the recordings in {folder} could be read; {run.unread[0].name}: {run.unread[0].reason}"
        )
    rows.sort(key=lambda row: row[:2], reverse=True)
    by_cost = sorted(costs.items(), key=lambda one: (-one[1].time_ns, -one[1].requests))
    run.answers = [
        Answer(
            question="recordings",
            columns=COLUMNS,
            rows=[row for *_, row in rows[:MOST_ROWS]],
            is_cut=len(rows) > MOST_ROWS,
        ),
        Answer(question="costs", columns=COSTS, rows=[[code, *cost.cells()] for code, cost in by_cost]),
    ]
    return run


class _Cost:
    """Costs of one finding over all recordings."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.calls = self.time_ns = self.paid_ns = self.requests = self.bytes = 0
        self._most: tuple[int, int] = (-1, -1)
        self._most_at = ""

    def add(self, name: str, calls: int, time_ns: int, requests: int, size: int) -> None:
        self.names.add(name)
        self.calls += calls
        self.time_ns += time_ns
        self.paid_ns += time_ns if calls else 0
        self.requests += requests
        self.bytes += size
        if (time_ns, requests) > self._most:
            self._most, self._most_at = (time_ns, requests), name

    def cells(self) -> list[Cell]:
        per_call = self.paid_ns // self.calls if self.calls else None
        figures = (self.calls, self.time_ns, per_call, self.requests, self.bytes)
        return [len(self.names), *map(_bounded, figures), _text(self._most_at)]


class Summarizers:
    """Processes that summarize recordings."""

    def __init__(self, number: int) -> None:
        self._pool = ThreadPoolExecutor(number)
        self._own = threading.local()
        self._lock = threading.Lock()
        self._started: list[subprocess.Popen[bytes]] = []
        self._is_closed = False

    def summarize(self, paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
        """The summaries, in the order of the recordings. Each is a summary, or has the member ``error``."""
        return self._pool.map(self._summarize, paths)

    def _summarize(self, path: Path) -> dict[str, Any]:
        if not is_unicode(str(path)):
            return {"error": "its name is no UTF-8; give it another"}
        child: subprocess.Popen[bytes] | None = getattr(self._own, "child", None)
        if child is None:
            child = self._own.child = self._start()
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(json.dumps(str(path)).encode() + b"\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except BrokenPipeError:
            line = b""
        if line.endswith(b"\n"):
            summary: dict[str, Any] = json.loads(line)
            return summary
        self._own.child = None
        code = child.wait()
        end = f"ended with exit code {code}" if code >= 0 else f"was ended by {signal_name(-code)}"
        return {"error": f"the process that read it {end}"}

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the processes were ended")
            # A traceback is a fault of mcpace, and is shown.
            child = start_group(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._started.append(child)
            return child

    def __enter__(self) -> Summarizers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._lock:
            self._is_closed = True
        for child in self._started:
            if kind is not None:
                kill_group(child)
        self._pool.shutdown(cancel_futures=True)
        for child in self._started:
            for stream in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):
                    stream.close()  # type: ignore[union-attr]
            try:
                child.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                kill_group(child)
                child.wait()


def _text(name: str) -> str:
    """A name of a file, which need not be text, as JSON has it."""
    return name.encode(errors="replace").decode()


def _bounded(value: int | None) -> int | None:
    return None if value is None else min(value, LARGEST)
