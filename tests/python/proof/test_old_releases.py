"""Real old releases that show a cause, each beside one that doesn't: the same SDK's, or another's (docs/findings.md).

They are there for their age and take minutes, so `make proof` runs them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcpace.lab import targets
from mcpace.lab.clients.plan import Plan, Settings
from mcpace.lab.clients.run_clients import run_clients
from mcpace.lab.progress import Silent
from mcpace.lab.targets import Tool
from support.finding_scenes import Receive, Scope, Send, body, head, patient, reply
from support.finding_scenes import serve_app as asgi
from support.quiet_streams import CLIENTS, FIVE_MINUTES_S, hold_streams
from support.release_proofs import by_subject, codes, interpreter, listening, server
from support.watched_process import explained_codes, record_process

pytestmark = [pytest.mark.network, pytest.mark.proof]

GREET = {"name": "greet", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
GREET_TOOL = Tool("greet", {"name": "x"})


@pytest.mark.parametrize(
    ("code", "shows", "does_not", "profile", "fault"),
    [
        ("duplicate-request", "python@1.12.1", "python@1.11.0", "profile:notion", None),
        ("duplicate-request", "python@1.13.1", "python@1.14.0", "profile:notion", None),
        ("duplicate-request", "fastmcp@2.11.2", "fastmcp@4.1.6", "profile:notion", None),
        ("session-per-call", "langchain@0.3.2", "langchain@0.3.2:session", "profile:simple", None),
        ("hidden-listing", "langchain@0.3.2", "langchain@0.1.0", "profile:simple", None),
        ("waits-for-get", "go@1.2.0", "go@1.8.0", "profile:simple", "get-headers=500ms"),
        ("discovery-repeated", "typescript@1.20.0", "typescript@1.32.2", "profile:notion", None),
        ("connection-per-request", "python@1.30.0", "typescript@1.32.2", "profile:simple", None),
        ("stream-not-drained", "rmcp@0.9.0", "typescript@1.32.2", "profile:notion", None),
    ],
)
def test_at_a_scripted_target(code: str, shows: str, does_not: str, profile: str, fault: str | None) -> None:
    found = codes(targets.parse_target(profile), shows, does_not, fault=fault, hold_s=0.5)
    assert code in found[shows]
    assert code not in found[does_not]


FASTMCP = """
import sys
from fastmcp import FastMCP
server = FastMCP("shop")
@server.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"
server.run("http", host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""


def test_fastmcp_2_11_sends_each_request_on_to_the_path_with_a_slash() -> None:
    command = [interpreter("fastmcp@2.11.2"), "-c", FASTMCP]
    with listening(command) as (port, _):
        for path, redirects in (("/mcp", True), ("/mcp/", False)):
            target = targets.parse_target(f"http://127.0.0.1:{port}{path}", tool=GREET_TOOL)
            assert ("redirect-per-request" in codes(target, "go@1.8.0")["go@1.8.0"]) is redirects, path


class PlainGet(BaseHTTPRequestHandler):
    """A server with sessions that answers the standalone GET with 200 and a text, and takes its time for a call."""

    protocol_version = "HTTP/1.1"
    ended: threading.Event
    """Set when the handler's server has ended."""

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
                # Several of the client's pauses of a second: who doesn't come again has had the time to.
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
    ended = threading.Event()
    handler = type("PlainGetUntil", (PlainGet,), {"ended": ended})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        finally:
            ended.set()
            server.shutdown()
            thread.join()


def test_typescript_1_23_opens_the_stream_again_and_again() -> None:
    with plain_get() as url:
        found = codes(targets.parse_target(url, tool=Tool("greet")), "typescript@1.23.0", "typescript@1.20.0", trials=2)
    assert "get-loop" in found["typescript@1.23.0"]
    assert "get-loop" not in found["typescript@1.20.0"]


@pytest.mark.parametrize(("release", "leaks"), [("python@1.9.4", True), ("python@1.30.0", False)])
@patient
def test_mcp_1_9_keeps_a_part_of_each_stateless_request(release: str, leaks: bool, tmp_path: Path) -> None:
    with server(release, "json", "stateless") as running:
        url = urlsplit(running.url)
        assert url.port is not None
        with record_process(url.port, running.pid, tmp_path, url.path) as (asking, file):
            asking.repeat_call(1_500)
    assert ("task-leak" in explained_codes(file)) is leaks


@pytest.mark.parametrize(
    ("release", "end", "leaks"),
    [("python@1.9.4", False, True), ("python@1.9.4", True, True), ("python@1.30.0", True, False)],
)
@patient
def test_mcp_1_9_keeps_sessions_and_a_part_of_those_that_are_ended(
    release: str, end: bool, leaks: bool, tmp_path: Path
) -> None:
    with server(release, "json", "stateful") as running:
        url = urlsplit(running.url)
        assert url.port is not None
        with record_process(url.port, running.pid, tmp_path, url.path) as (asking, file):
            asking.begin_sessions(1_500, end=end)
    assert ("session-leak" in explained_codes(file)) is leaks


GO_TOOLS = Path(__file__).parents[2] / "proof" / "go-tools"


def go_server(release: str, folder: Path) -> Path:
    """The program of GO_TOOLS, built with a release of go-sdk; the second half of its sources is that release's."""
    folder.mkdir()
    shutil.copy(GO_TOOLS / "main.go", folder)
    shutil.copy(GO_TOOLS / ("cache.go.before" if release == "1.2.0" else "cache.go.since"), folder / "cache.go")
    for words in (
        ["mod", "init", "tools"],
        ["get", f"github.com/modelcontextprotocol/go-sdk/mcp@v{release}"],
        ["build", "-o", "tools", "."],
    ):
        done = subprocess.run(["go", *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    return folder / "tools"


@pytest.mark.parametrize(("release", "rebuilds"), [("1.2.0", True), ("1.3.0", False)])
@patient
def test_go_sdk_1_2_makes_schemas_anew_for_each_request(release: str, rebuilds: bool, tmp_path: Path) -> None:
    place = Path(tempfile.mkdtemp(dir=tmp_path))
    program = go_server(release, place / release)
    files = []
    for tools in (5, 200):
        with listening([str(program), str(tools)]) as (port, pid), record_process(port, pid, place) as (asking, file):
            asking.ask("tools/list")
            asking.repeat_call(300, "tool0", name="x", count=1, tags=[], bill=ADDRESS, deliver=[])
        files.append(file)
    few, many = files
    assert ("rebuilt-per-request" in explained_codes(few, "--beside", many.name)) is rebuilds


ADDRESS = {"street": "", "city": "", "country": "", "labels": {}}


class Forgetful:
    """A server that ends a call's stream before the result, and has nothing for who asks it to go on."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":
            if b"last-event-id" not in dict(scope["headers"]):
                await reply(send, 405, b"", "text/plain")
                return
            await head(send, 200, "text/event-stream")
            await send({"type": "http.response.body", "body": b": nothing\n\n"})
            return
        asked = json.loads(await body(receive) or b"{}")
        match asked.get("method"):
            case "initialize":
                server = {"name": "forgetful", "version": "1"}
                revision = asked["params"]["protocolVersion"]
                result = {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": server}
                await head(send, 200, "application/json", (b"mcp-session-id", b"s1"))
                await send({"type": "http.response.body", "body": answer(asked, result)})
            case "tools/list":
                await reply(send, 200, answer(asked, {"tools": [GREET]}), "application/json")
            case "tools/call":
                await head(send, 200, "text/event-stream")
                await send({"type": "http.response.body", "body": b"id: 1\nretry: 100\ndata: \n\n"})
            case _:
                await reply(send, 202, b"", "text/plain")


def answer(asked: dict[str, Any], result: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()


def test_mcp_1_30_asks_a_stream_to_go_on_without_end() -> None:
    """Its call ends with its time limit, go-sdk's as soon as the stream has."""
    subjects = ("python@1.30.0", "go@1.4.1")
    with asgi(Forgetful()) as url:
        plan = Plan(subjects, (targets.parse_target(url, tool=GREET_TOOL),), Settings(trials=1, time_limit_s=6))
        found = by_subject(run_clients(plan, Silent()))
    assert "resume-loop" in found["python@1.30.0"]
    assert "resume-loop" not in found["go@1.4.1"]


def test_undici_and_httpx_end_streams_that_are_silent_for_five_minutes() -> None:
    """By their own time-outs, so it takes as long. The controls: a client without one, a server that says something."""
    with ExitStack() as stack:
        streams = {
            "go": stack.enter_context(hold_streams("go@1.8.0")),
            "typescript, with comments": stack.enter_context(hold_streams("typescript@1.32.2", comments_s=15)),
            "typescript": stack.enter_context(hold_streams("typescript@1.32.2")),
            "python": stack.enter_context(hold_streams("python@1.30.0")),
        }
        for name in ("typescript", "python"):
            streams[name].until_all_have_ended()
        for name in ("go", "typescript, with comments"):
            assert streams[name].stand(), name
        cut = {name: clients.findings().get("clustered-stream-lifetime") for name, clients in streams.items()}
    assert {name for name, finding in cut.items() if finding} == {"typescript", "python"}
    for finding in filter(None, cut.values()):
        context = finding["context"]
        assert context["closed_by"] == "client"
        assert context["streams"] == CLIENTS
        assert context["age_ns"] // 10**9 in range(FIVE_MINUTES_S, FIVE_MINUTES_S + 5)
