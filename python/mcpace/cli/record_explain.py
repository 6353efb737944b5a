"""``mcpace record --explain``: names causes of lost time on stderr while the recording goes on.

Design constraint: the recording comes first. A thread explains the file up to its last flush, waits forty times as
long as that took, and gives up beyond a size. Nothing waits for the thread: neither the recorder nor the end of the
command. A child process is no alternative, because the recorder of a stdio server samples every child as the server.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

from mcpace.cli.notes import inform
from mcpace.lab.errors import UsageProblem
from mcpace.lab.explain import recording_run
from mcpace.report.groups import group_findings
from mcpace.report.model.run import Run
from mcpace.report.words.quantities import count, size
from mcpace.report.words.recording import cause_sentence

SHORTEST_WAIT_S = 1.0
WAIT_FACTOR = 40.0
"""Pause after an explanation, as a multiple of its time. Two threads read a file, so at most 5 % of a core is spent."""
MOST_BYTES = 8 * 1024 * 1024
"""Size of the compressed file beyond which it is no longer explained live."""


class LiveExplanation:
    """Explains a recording that is still being written. Use as a context manager."""

    def __init__(self, file: Path, *, shortest_wait_s: float = SHORTEST_WAIT_S, most_bytes: int = MOST_BYTES) -> None:
        self._file = file
        self._shortest_wait_s = shortest_wait_s
        self._most_bytes = most_bytes
        self._over = threading.Event()
        self._known: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="mcpace-explain", daemon=True)

    def __enter__(self) -> LiveExplanation:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        # The thread is not joined: it is a daemon, and prints nothing from now on.
        self._over.set()

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # somebody removed the file
            self._explain_repeatedly()

    def _explain_repeatedly(self) -> None:
        wait_s, explained = self._shortest_wait_s, 0
        while not self._over.wait(wait_s):
            written = self._file.stat().st_size
            if written > self._most_bytes:
                inform(f"the recording has more than {size(self._most_bytes)}; its causes are named when it ends")
                return
            if written == explained:
                continue
            started = time.monotonic()
            self._explain_once()
            explained = written
            wait_s = max(self._shortest_wait_s, WAIT_FACTOR * (time.monotonic() - started))

    def _explain_once(self) -> None:
        try:
            run = recording_run.explain_recording(self._file)
        except UsageProblem:
            return  # nothing was flushed yet; the end of the recording reports a file that stays unreadable
        for sentence in self._new_causes(run):
            if self._over.is_set():
                return
            inform(f"{time.strftime('%H:%M:%S')}, after {_count_calls(run)}: {sentence}")

    def _new_causes(self, run: Run) -> list[str]:
        new = [group for group in group_findings(run.cases) if group.code not in self._known]
        self._known.update(group.code for group in new)
        return [cause_sentence(group) for group in new]


def _count_calls(run: Run) -> str:
    methods = run.recording.methods if run.recording else []
    return count(sum(one.requests for one in methods if one.method == "tools/call"), "call")
