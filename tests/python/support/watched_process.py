"""Runs ``mcpace record --watch`` before a server, makes requests through it, and reads the recording's findings."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.commands import LIMIT_S, run
from support.http_client import HttpClient
from support.kept_runs import keep_json


class RecordedClient(HttpClient):
    """A client that makes many requests through a recorder."""

    def begin_sessions(self, number: int, *, end: bool) -> None:
        """Starts sessions one after another, and ends each if ``end`` is set."""
        for _ in range(number):
            self.initialize("2025-03-26")
            assert self.session
            if end:
                self.end_session()
            self.headers.clear()

    def repeat_call(self, number: int, tool: str = "echo", **arguments: Any) -> None:
        """Calls a tool ``number`` times."""
        for _ in range(number):
            self.call(tool, **(arguments or {"text": "x"}))


@contextmanager
def record_process(port: int, pid: int, folder: Path, path: str = "/mcp") -> Iterator[tuple[RecordedClient, Path]]:
    """Runs ``mcpace record --watch`` before a server. Yields a client and the recording's file."""
    file = folder / f"{port}.jsonl.zst"
    upstream = f"http://127.0.0.1:{port}{path}"
    words = ["record", "--upstream", upstream, "--out", str(file), "--watch", str(pid), "--body-limit", "0"]
    with subprocess.Popen([sys.executable, "-m", "mcpace", *words], stderr=subprocess.PIPE, text=True) as recorder:
        assert recorder.stderr is not None
        try:
            told = recorder.stderr.readline()
            yield RecordedClient(int(told.split("http://127.0.0.1:")[1].split("/")[0]), path=path), file
        finally:
            recorder.send_signal(signal.SIGINT)
            recorder.communicate(timeout=LIMIT_S)


def explained_codes(file: Path, *words: object) -> set[str]:
    """Codes of the findings that ``mcpace explain FILE`` prints."""
    done = run("explain", file.name, "--json", *words, folder=file.parent)
    assert done.code == 0, done.stderr
    keep_json(done.stdout)
    return {finding["code"] for case in json.loads(done.stdout)["cases"] for finding in case["findings"]}
