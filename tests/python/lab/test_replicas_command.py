"""``mcpace replicas``: copies of real servers behind the balancer, while copies are killed, added and replaced."""

from __future__ import annotations

import http.client
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mcpace.lab.replicas.balancer import EVENT_WITH_ID, Backend, Balancer
from mcpace.lab.replicas.findings import find_lost_sessions
from mcpace.report.model.replicas import Policy, ReplicaStep
from support.commands import Ended, run

SERVER = """
import asyncio, os, sys
from datetime import timedelta
from pydantic import BaseModel
from mcpace import Context, MCPServer, RequestStateSecurity, TaskConfig

shared = RequestStateSecurity(keys=["0" * 64]) if "shared-key" in sys.argv else None
mcp = MCPServer("shop", request_state_security=shared)

class Name(BaseModel):
    name: str

@mcp.tool(annotations={"readOnlyHint": True})
def ping() -> str:
    return "pong"

@mcp.tool()
async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"

@mcp.tool(task=TaskConfig(poll_interval=timedelta(milliseconds=20)))
async def work() -> str:
    return "worked"

@mcp.tool()
async def change(ctx: Context) -> str:
    await ctx.notify_tools_changed()
    return "changed"

@mcp.tool()
async def ask(ctx: Context) -> str:
    return str((await ctx.elicit("Your name?", Name)).action)

form = {"response": "sse"} if "sse" in sys.argv else {}
mcp.run("streamable-http", **form, port=int(os.environ["PORT"]) if "one-port" not in sys.argv else int(sys.argv[-1]))
"""


def replicas_of(folder: Path, *words: str, server: tuple[str, ...] = ()) -> tuple[Ended, dict[str, Any]]:
    program = folder / "server.py"
    program.write_text(SERVER)
    ended = run(
        *("replicas", "2", "--duration", "0s", "--json", *words, "--", sys.executable, str(program), *server),
        folder=folder,
    )
    return ended, json.loads(ended.stdout)["replicas"] if ended.stdout else {}


def outcomes(found: dict[str, Any], policy: Policy) -> dict[tuple[str, str], tuple[int, int]]:
    """For each event and step: the number of requests that failed, and of those that lost their session."""
    return {
        (one["event"], one["step"]): (one["failed"], one["lost"]) for one in found["steps"] if one["policy"] == policy
    }


def test_sessions_work_at_the_copy_that_began_them_and_end_with_it(tmp_path: Path) -> None:
    ended, found = replicas_of(
        tmp_path,
        *("--revision", "2025-11-25", "--policy", "session", "--policy", "round-robin", "--question-tool", "ask"),
        *("--long-tool", 'wait={"seconds": 1.5}', "--fail-on", "session-lost-behind-balancer"),
        server=("sse",),
    )
    assert ended.code == 1, ended.stderr
    [finding] = found["findings"]
    assert (finding["code"], finding["revision"]) == ("session-lost-behind-balancer", "2025-11-25")
    assert finding["policies"] == ["round-robin"] and finding["needs"] == ["shared-sessions", "affinity"]
    assert "404" in finding["saw"]
    assert outcomes(found, "round-robin")["steady", "connect"][0] > 0
    held = outcomes(found, "session")
    for step in ("connect", "list", "call", "question", "resume"):
        assert held["steady", step] == (0, 0), held
    assert held["killed", "in-flight"][0] > 0, "the killed copy had calls in flight"
    assert held["killed", "list"][1] > 0 and held["killed", "reconnect"] == (0, 0)


def test_a_server_without_sessions_survives_and_a_shared_key_keeps_its_questions(tmp_path: Path) -> None:
    options = ("--revision", "2026-07-28", "--policy", "round-robin", "--question-tool", "ask")
    ended, own = replicas_of(tmp_path, *options, "--task-tool", "work", "--change-tool", "change")
    assert ended.code == 0, ended.stderr
    assert [(one["kept"], one["needs"]) for one in own["findings"]] == [
        ("state", ["shared-key"]),
        ("tasks", ["shared-tasks"]),
        ("changes", ["shared-changes"]),
    ]
    steady = {step: failed for (event, step), (failed, _) in outcomes(own, "round-robin").items() if event == "steady"}
    assert steady["question"] > 0 and steady["task"] > 0 and steady["change"] > 0, steady
    assert steady["listen"] == 0, steady
    assert ("killed", "task-in-flight") in outcomes(own, "round-robin")
    ended, shared = replicas_of(tmp_path, *options, server=("shared-key",))
    assert ended.code == 0, ended.stderr
    assert shared["findings"] == []
    assert {failed for failed, _ in outcomes(shared, "round-robin").values()} == {0}


def test_load_goes_on_while_copies_are_killed_added_and_replaced(tmp_path: Path) -> None:
    ended, found = replicas_of(
        tmp_path, "--revision", "2026-07-28", "--policy", "least-connections", "--duration", "4s", "--vus", "2"
    )
    assert ended.code == 0, ended.stderr
    [load] = found["loads"]
    assert load["error"] == "" and load["calls"] > 100 and load["failed"] <= load["calls"] // 10


def test_what_cannot_be_tried_is_one_sentence(tmp_path: Path) -> None:
    for words, code, told in (
        (("1", "--", "true"), 2, "2 to 16 copies"),
        (("2", "--policy", "random", "--", "true"), 2, "random"),
        (("2", "--long-tool", "=1", "--", "true"), 2, "--long-tool"),
        (("2", "--long-tool", "wait=[1]", "--", "true"), 2, "JSON object"),
        (("2", "--fail-on", "slow-start", "--", "true"), 2, "slow-start"),
        (("2", "--", "true"), 3, "exited with code 0"),
        (("2", "--", "/no/such/program"), 3, "/no/such/program"),
    ):
        ended = run("replicas", *words, folder=tmp_path)
        assert ended.code == code, (words, ended.stderr)
        assert told in ended.sentence(), (words, ended.stderr)


def test_copies_that_fight_for_one_port_say_how_to_give_each_its_own(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as free:
        port = free.server_address[1]
    ended, _ = replicas_of(tmp_path, server=("one-port", str(port)))
    assert ended.code == 2 and "{port}" in ended.sentence() and "--port-variable" in ended.sentence()


class Copy(BaseHTTPRequestHandler):
    """Answers with its number, begins a session, and breaks off one reply."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        number = str(self.server.server_address[1]).encode()
        self.send_response(200 if self.path != "/lost" else 404)
        self.send_header("mcp-session-id", f"s{number.decode()}")
        self.send_header("content-length", str(len(number) + (5 if self.path == "/cut" else 0)))
        self.end_headers()
        self.wfile.write(number)
        self.close_connection = self.path == "/cut"

    def log_message(self, *_: object) -> None: ...


@contextmanager
def balanced(policy: Policy) -> Iterator[tuple[Balancer, list[Backend], list[ThreadingHTTPServer]]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Copy)) for _ in range(3)]
        for server in servers:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            stack.callback(server.shutdown)
        balancer = stack.enter_context(Balancer(policy))
        backends = [Backend(n, "127.0.0.1", server.server_port) for n, server in enumerate(servers)]
        for backend in backends:
            balancer.add(backend)
        yield balancer, backends, servers


def post(balancer: Balancer, path: str = "/", **headers: str) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", balancer.port, timeout=10)
    try:
        connection.request("POST", path, body=b"{}", headers={k.replace("_", "-"): v for k, v in headers.items()})
        reply = connection.getresponse()
        return reply.status, reply.read().decode(), {name.lower(): value for name, value in reply.getheaders()}
    finally:
        connection.close()


def test_the_balancer_spreads_holds_and_passes_over_refused_connections() -> None:
    with balanced("round-robin") as (balancer, backends, servers):
        assert {post(balancer)[1] for _ in range(3)} == {str(one.port) for one in backends}
        servers[0].shutdown()
        servers[0].server_close()
        assert {post(balancer)[1] for _ in range(6)} == {str(one.port) for one in backends[1:]}
        assert balancer.take_refusals() == []
        session = post(balancer)[2]["mcp-session-id"]
        assert post(balancer, "/lost", mcp_session_id=session)[0] == 404
        [refusal] = balancer.take_refusals()
        assert (refusal.status, refusal.has_session) == (404, True)
        with pytest.raises(http.client.IncompleteRead):
            post(balancer, "/cut")
        for backend in backends:
            balancer.remove(backend)
        assert post(balancer)[0] == 503
    with balanced("session") as (balancer, _, _):
        _, port, headers = post(balancer)
        assert {post(balancer, mcp_session_id=headers["mcp-session-id"])[1] for _ in range(5)} == {port}
    with balanced("cookie") as (balancer, _, _):
        _, port, headers = post(balancer)
        assert {post(balancer, cookie=headers["set-cookie"].partition(";")[0])[1] for _ in range(5)} == {port}
        assert {post(balancer, cookie="mcpace-copy=77")[1] for _ in range(3)} != {port}


@pytest.mark.parametrize(
    ("stream", "passed"),
    [
        (b"event: message\ndata: 1\n\nid: 7\ndata:\n\ndata: 2\n\n", b"event: message\ndata: 1\n\nid: 7\ndata:\n\n"),
        (b"id: 7\r\ndata:\r\n\r\ndata: 2\r\n\r\n", b"id: 7\r\ndata:\r\n\r\n"),
        (b"id:\ndata: 1\n\ndata: id: 7\n\n", None),
    ],
)
def test_a_stream_is_broken_off_after_its_first_event_with_an_id(stream: bytes, passed: bytes | None) -> None:
    found = EVENT_WITH_ID.search(stream)
    assert (stream[: found.end()] if found is not None else None) == passed


def test_requests_with_an_unknown_length_are_refused() -> None:
    with balanced("round-robin") as (balancer, _, _):
        assert post(balancer, transfer_encoding="chunked")[0] == 411


def step(event: str, policy: str, name: str = "call", **facts: Any) -> ReplicaStep:
    return ReplicaStep.model_validate(
        {"revision": "2025-11-25", "policy": policy, "event": event, "step": name, "requests": 9} | facts
    )


def test_a_session_that_no_policy_keeps_needs_a_store_and_no_affinity() -> None:
    steps = [step("steady", "session", lost=3), step("steady", "round-robin", lost=6, saw="404")]
    [finding] = find_lost_sessions(steps)
    assert (finding.needs, finding.lost, finding.requests) == (["shared-sessions"], 9, 18)
    assert find_lost_sessions([step("steady", "session"), step("killed", "session", failed=3)]) == []
    [finding] = find_lost_sessions([step("steady", "session"), step("rolled", "session", lost=3)])
    assert (finding.policies, finding.events, finding.needs) == ([], ["rolled"], ["shared-sessions"])
    [finding] = find_lost_sessions(
        [step("steady", "round-robin", "resume", failed=3), step("steady", "session", "resume")]
    )
    assert (finding.kept, finding.policies) == ("streams", ["round-robin"])
    assert finding.needs == ["shared-streams", "affinity"]
