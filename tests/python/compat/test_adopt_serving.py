"""Properties of adopted servers other than their replies: messages at the start, authorization, disconnecting
clients."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from support.adoption import LEGACY, MODERN, ROOT, SDKS, Pair, Sdk, Subject, served
from support.dialogue import Peer, events
from support.http_client import HttpClient

EXAMPLES = (
    "quickstart",
    "structured",
    "context",
    "middleware",
    "lowlevel",
    "composed",
    "secured",
    "waiting",
    "changing",
    "requested",
    "resuming",
)

# The number of adopted tools by example and SDK. An example that an SDK lacks is not tested with it.
NOTES = {
    "quickstart": "adopted 4 of 4 tools",
    "context": {"mcp-1": "adopted 0 of 9 tools", "mcp-2": "adopted 0 of 9 tools", "fastmcp": "adopted 0 of 12 tools"},
    "structured": {
        "mcp-1": "adopted 19 of 19 tools",
        "mcp-2": "adopted 19 of 19 tools",
        "fastmcp": "adopted 20 of 24 tools; 4 run in the SDK: hurried, too_slow (it has a time limit); "
        "inline (it wants to run on the loop's thread); generates (it yields)",
    },
    "middleware": {
        "mcp-2": "every request runs in the SDK: its middleware changes sees every message",
        "fastmcp": "every request runs in the SDK: its middleware Changes sees calls",
    },
    "lowlevel": "every request runs in the SDK: a low-level server's handlers are its own",
    "composed": "every request runs in the SDK: its tools are transformed",
    "secured": "adopted 1 of 2 tools; 1 runs in the SDK: who (it uses get_access_token)",
    "changing": {
        "mcp-1": "adopted 1 of 3 tools; 2 run in the SDK: grow, shrink (it uses its server)",
        "mcp-2": "adopted 1 of 4 tools; 3 run in the SDK: grow, shrink (it uses its server); announce (it takes a",
        "fastmcp": "adopted 1 of 3 tools; 2 run in the SDK: grow, shrink (it uses its server)",
    },
    "requested": {
        "mcp-1": "adopted 0 of 1 tool; 1 runs in the SDK: caller (it takes a context)",
        "mcp-2": "adopted 0 of 1 tool; 1 runs in the SDK: caller (it takes a context)",
        "fastmcp": "adopted 0 of 1 tool; 1 runs in the SDK: caller (it uses get_http_request)",
    },
    "resuming": "adopted 0 of 1 tool; 1 runs in the SDK: leave (it takes a context)",
    "waiting": {
        "mcp-1": "adopted 1 of 2 tools; 1 runs in the SDK: wait (it takes a context)",
        "mcp-2": "adopted 1 of 2 tools; 1 runs in the SDK: wait (it takes a context)",
        "fastmcp": "adopted 1 of 2 tools; 1 runs in the SDK: wait (it takes a context or dependencies)",
    },
}


@pytest.fixture(scope="module", params=SDKS, ids=lambda sdk: sdk.name)
def sdk(request: pytest.FixtureRequest) -> Sdk:
    return request.param


@pytest.fixture(scope="module")
def pairs(sdk: Sdk) -> Iterator[dict[str, Pair]]:
    there = [name for name in EXAMPLES if (ROOT / "tests/adopt/servers" / sdk.examples / f"{name}.py").exists()]
    with served(sdk, [Subject(name, "sse") for name in there]) as running:
        yield {subject.example: pair for subject, pair in running.items()}


@pytest.mark.network
def test_what_was_adopted_is_said(sdk: Sdk, pairs: dict[str, Pair]) -> None:
    for example, pair in pairs.items():
        expected = NOTES[example]
        if isinstance(expected, dict):
            expected = expected[sdk.examples]
        release, _, said = pair.notes[0].partition("): ")
        assert said.startswith(expected), example
        assert sdk.name.split("-")[0] in release


@pytest.mark.network
def test_tokens_are_verified_and_other_paths_answered(sdk: Sdk, pairs: dict[str, Pair]) -> None:
    port = pairs["secured"].adopted
    # FastMCP's verifier itself refuses a token without the scopes.
    narrow = 401 if sdk.examples == "fastmcp" else 403
    for token, status in {"": 401, "bad": 401, "old": 401, "narrow": narrow, "good": 200}.items():
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        peer = Peer(port, LEGACY, headers=headers)
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        with peer._sent("POST", message, {}) as reply:
            assert reply.status == status, token
            if status in (401, 403):
                assert reply.getheader("www-authenticate", "").startswith("Bearer ")
    # A route of the author's own needs no token.
    with HttpClient(port) as client:
        health, _, body = client.send("GET", "/health")
    assert (health, json.loads(body)) == (200, {"status": "ok"})


@pytest.mark.network
def test_a_call_that_nobody_wants_is_cancelled(pairs: dict[str, Pair]) -> None:
    peer = Peer(pairs["waiting"].adopted, LEGACY)
    peer.open()
    params = {"name": "wait", "_meta": {"progressToken": 1}}
    message = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}
    with peer._sent("POST", message, {}) as reply:
        # The progress notification shows that the call has begun.
        while not reply.readline().startswith(b"data: {"):
            pass
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}
        with peer._sent("POST", cancelled, {}) as taken:
            assert taken.status == 202
        reply.read()
    assert peer.ask({"method": "tools/call", "params": {"name": "how"}})["answer"]["result"]["content"][0]["text"]
    peer.close()


@pytest.mark.network
def test_stream_that_a_tool_closes_is_resumed_for_the_answer(pairs: dict[str, Pair]) -> None:
    if "resuming" not in pairs:
        # Servers of the other SDKs have no event store of their own.
        return
    for port in (pairs["resuming"].original, pairs["resuming"].adopted):
        peer = Peer(port, LEGACY)
        peer.open()
        message = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "leave"}}
        with peer._sent("POST", message, {}) as reply:
            lines = reply.read().decode().splitlines()
        *_, last = [line.removeprefix("id:").strip() for line in lines if line.startswith("id:")]
        assert not any('"result"' in line for line in lines)
        with peer._sent("GET", None, {"Last-Event-ID": last}) as reply:
            answer = next(told for told in events(reply) if told.get("id") == 77)
        assert answer["result"]["content"][0]["text"] == "back"
        peer.close()


@pytest.mark.network
def test_what_a_server_announces_reaches_those_who_listen(sdk: Sdk, pairs: dict[str, Pair]) -> None:
    if sdk.name != "mcp-2":
        # The others have no bus.
        return
    peer, other = (Peer(pairs["changing"].adopted, MODERN) for _ in range(2))
    wanted = {"resourcesListChanged": True, "resourceSubscriptions": ["note://one"]}
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"notifications": wanted, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    with peer._sent("POST", message, {"Mcp-Method": "subscriptions/listen"}) as reply:
        heard = events(reply)
        assert next(heard)["method"] == "notifications/subscriptions/acknowledged"
        other.ask({"method": "tools/call", "params": {"name": "announce"}})
        assert next(heard)["method"] == "notifications/resources/list_changed"
        updated = next(heard)
        assert (updated["method"], updated["params"]["uri"]) == ("notifications/resources/updated", "note://one")


@pytest.mark.network
def test_a_request_is_seen_as_it_came(pairs: dict[str, Pair]) -> None:
    def seen(port: int) -> list[Any]:
        peer = Peer(port, LEGACY, path="/mcp?team=blue&team=red")
        peer.open()
        answer = peer.ask({"method": "tools/call", "params": {"name": "caller"}})["answer"]
        told = answer["result"]["content"][0]["text"]
        peer.close()
        with HttpClient(port) as client:
            other = client.send("GET", "/caller?of=routes")[2].decode()
        return [json.loads(text.replace(str(port), "PORT")) for text in (told, other)]

    pair = pairs["requested"]
    call, route = seen(pair.adopted)
    assert [call, route] == seen(pair.original)
    assert call["client"] == route["client"] == "127.0.0.1"
    assert call["url"] == "http://127.0.0.1:PORT/mcp?team=blue&team=red"


@pytest.mark.network
def test_a_version_that_nobody_speaks_is_refused_with_those_that_discovery_names(
    sdk: Sdk, pairs: dict[str, Pair]
) -> None:
    if MODERN not in sdk.revisions:
        return

    def supported(port: int) -> list[str]:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2099-01-01",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        peer = Peer(port, "2099-01-01")
        with peer._sent("POST", message, {"Mcp-Method": "tools/list"}) as reply:
            refused: list[str] = json.loads(reply.read())["error"]["data"]["supported"]
        return refused

    pair = pairs["quickstart"]
    discovered = Peer(pair.adopted, MODERN).open()["answer"]["result"]["supportedVersions"]
    assert supported(pair.adopted) == supported(pair.original) == discovered


@pytest.mark.network
def test_many_sessions_at_once_keep_apart(sdk: Sdk, pairs: dict[str, Pair]) -> None:
    keeps = sdk.examples == "fastmcp"
    wrong: list[str] = []

    def session(number: int) -> None:
        peer = Peer(pairs["context"].adopted, LEGACY, headers={"X-Example": f"caller {number}"})
        try:
            peer.open()
            for turn in range(5):
                params = (
                    {"name": "remember", "arguments": {"value": f"{number}-{turn}"}} if keeps else {"name": "about"}
                )
                told = peer.ask({"method": "tools/call", "params": params})
                said = told["answer"]["result"]["content"][0]["text"]
                before = f"{number}-{turn - 1}" if turn else "None"
                expected = f"{before} → {number}-{turn}" if keeps else f"caller {number}"
                if expected not in said:
                    wrong.append(f"{expected}: {said}")
            peer.close()
        except Exception as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=session, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_nothing_of_an_sdk_is_imported_to_find_out() -> None:
    program = (
        "import sys; from mcpace.server.adopt import adopt, adoptable\n"
        "class MCPServer: pass\n"
        "assert not adoptable(MCPServer()) and not adoptable(object()) and not adoptable(MCPServer)\n"
        "try: adopt(MCPServer())\n"
        "except TypeError as error: assert 'MCPServer' in str(error)\n"
        "else: raise SystemExit('adopted')\n"
        "assert not {'mcp', 'fastmcp', 'starlette', 'anyio'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
