"""Runs ``mcpace record --watch`` before a server, makes requests through it, and reads the recording's findings."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.commands import LIMIT_S, run


class Asking:
    """Makes requests on one kept-alive connection to a recorder."""

    def __init__(self, port: int, path: str = "/mcp") -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        self.path = path
        self.number = 0

    def ask(self, method: str, session: str | None = None, **params: Any) -> http.client.HTTPResponse:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        return self.send("POST", json.dumps(message), session)

    def send(self, method: str, body: str | None, session: str | None) -> http.client.HTTPResponse:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= {"Mcp-Session-Id": session} if session else {}
        self.connection.request(method, self.path, body, headers)
        reply = self.connection.getresponse()
        reply.read()
        assert reply.status < 300, reply.status
        return reply

    def sessions(self, number: int, *, end: bool) -> None:
        client = {"name": "test", "version": "0"}
        for _ in range(number):
            begun = self.ask("initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo=client)
            session = begun.headers["Mcp-Session-Id"]
            assert session
            if end:
                self.send("DELETE", None, session)

    def calls(self, number: int, tool: str = "echo", **arguments: Any) -> None:
        for _ in range(number):
            self.ask("tools/call", name=tool, arguments=arguments or {"text": "x"})


@contextmanager
def record_process(port: int, pid: int, folder: Path, path: str = "/mcp") -> Iterator[tuple[Asking, Path]]:
    """Runs ``mcpace record --watch`` before a server. Yields a client and the recording's file."""
    file = folder / f"{port}.jsonl.zst"
    upstream = f"http://127.0.0.1:{port}{path}"
    words = ["record", "--upstream", upstream, "--out", str(file), "--watch", str(pid), "--body-limit", "0"]
    with subprocess.Popen([sys.executable, "-m", "mcpace", *words], stderr=subprocess.PIPE, text=True) as recorder:
        assert recorder.stderr is not None
        try:
            told = recorder.stderr.readline()
            yield Asking(int(told.split("http://127.0.0.1:")[1].split("/")[0]), path), file
        finally:
            recorder.send_signal(signal.SIGINT)
            recorder.communicate(timeout=LIMIT_S)


def explained_codes(file: Path, *words: object) -> set[str]:
    """Codes of the findings that ``mcpace explain FILE`` prints."""
    done = run("explain", file.name, "--json", *words, folder=file.parent)
    assert done.code == 0, done.stderr
    return {finding["code"] for case in json.loads(done.stdout)["cases"] for finding in case["findings"]}
