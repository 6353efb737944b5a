"""Real old releases that show a cause, each beside one of the same SDK that doesn't (docs/findings.md).

They are there for their age, so `make adapters` runs them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mcpace.lab import experiment, targets
from mcpace.lab.plan import Plan, Settings
from mcpace.lab.progress import Silent
from mcpace.lab.targets import Target, Tool

pytestmark = [pytest.mark.network, pytest.mark.adapters]

GREET = {"name": "greet", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


def codes(target: Target, *subjects: str, trials: int = 4, fault: str | None = None) -> dict[str, set[str]]:
    """What was found of each release."""
    settings = Settings(trials=trials, hold_s=0.3, faults=(fault,) if fault else ())
    run = experiment.run(Plan(subjects, (target,), settings), Silent())
    assert not [case.error or case.failures or case.unsupported for case in run.cases if not case.trials_s]
    found: dict[str, set[str]] = {}
    for case in run.cases:
        found.setdefault(case.subject.label(), set()).update(finding.code for finding in case.findings)
    return found


@pytest.mark.parametrize(
    ("code", "shows", "does_not", "profile", "fault"),
    [
        ("duplicate-request", "fastmcp@2.11.2", "fastmcp@4.1.6", "profile:notion", None),
        ("session-per-call", "langchain@0.3.2", "langchain@0.3.2:session", "profile:simple", None),
        ("waits-for-get", "go@1.2.0", "go@1.8.0", "profile:simple", "get-headers=500ms"),
    ],
)
def test_at_a_scripted_target(code: str, shows: str, does_not: str, profile: str, fault: str | None) -> None:
    found = codes(targets.parse(profile), shows, does_not, fault=fault)
    assert code in found[shows]
    assert code not in found[does_not]


class PlainGet(BaseHTTPRequestHandler):
    """A server with sessions that answers the standalone GET with 200 and a text, and takes its time for a call."""

    protocol_version = "HTTP/1.1"
    ended = threading.Event()

    def do_GET(self) -> None:
        self.reply(b"Welcome to this server\n", "text/plain")

    def do_DELETE(self) -> None:
        self.reply(b"")

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self.reply(b"", status=202)
            return
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": self.result(message)}
        self.reply(json.dumps(answer).encode(), session=message["method"] == "initialize")

    def result(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["method"]:
            case "initialize":
                revision = message["params"]["protocolVersion"]
                server = {"name": "plain", "version": "1"}
                return {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": server}
            case "tools/list":
                return {"tools": [GREET]}
            case _:
                # Several of the client's pauses of a second.
                self.ended.wait(6.5)
                return {"content": [{"type": "text", "text": "hello"}]}

    def reply(self, body: bytes, kind: str = "application/json", *, status: int = 200, session: bool = False) -> None:
        self.send_response(status)
        if body:
            self.send_header("Content-Type", kind)
        if session:
            self.send_header("Mcp-Session-Id", "s1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None: ...


@contextmanager
def plain_get() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), PlainGet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        PlainGet.ended.set()
        server.shutdown()
        thread.join()


def test_typescript_1_23_opens_the_stream_again_and_again() -> None:
    with plain_get() as url:
        found = codes(targets.parse(url, tool=Tool("greet")), "typescript@1.23.0", "typescript@1.20.0", trials=2)
    assert "get-loop" in found["typescript@1.23.0"]
    assert "get-loop" not in found["typescript@1.20.0"]
