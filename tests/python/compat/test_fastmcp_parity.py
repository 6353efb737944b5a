"""One server with FastMCP's imports and with mcpace.fastmcp's: clients get the same answers.

``DIFFERENCES`` names what differs on purpose; docs/fastmcp.md has it for users.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.adoption import LEGACY, MODERN, ROOT, SDKS, SOURCES, interpreter

FASTMCP_4 = next(sdk for sdk in SDKS if sdk.name == "fastmcp-4")
SERVER = SOURCES / "face" / "features.py"

INITIALIZE = {
    "method": "initialize",
    "params": {
        "protocolVersion": LEGACY,
        "capabilities": {"elicitation": {}, "sampling": {}},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": name, "arguments": arguments}}


def read(uri: str) -> dict[str, Any]:
    return {"method": "resources/read", "params": {"uri": uri}}


def filled(name: str, **arguments: str) -> dict[str, Any]:
    return {"method": "prompts/get", "params": {"name": name, "arguments": arguments}}


def completed(ref: dict[str, str], name: str) -> dict[str, Any]:
    return {"method": "completion/complete", "params": {"ref": ref, "argument": {"name": name, "value": ""}}}


REQUESTS = [
    *({"method": f"{kind}/list"} for kind in ("tools", "resources", "resources/templates", "prompts")),
    tool("add", a=1),
    tool("add", a="5", b=7),
    tool("add"),
    tool("add", a={"not": "a number"}),
    tool("add", a=1, unknown=2),
    tool("order", item={"name": "tea"}, count=2),
    tool("order", item={"name": "tea", "price": -1}),
    tool("undocumented", items=[{"name": "tea"}]),
    tool("undocumented", items={"name": "tea"}),
    tool("sphinx", path="/x"),
    *(tool("anything", value=value) for value in ("text", 1, None, [], [1], {"a": 1}, {"a": {"b": [None]}})),
    *(tool(name) for name in ("many", "numbers", "point", "tree", "nothing", "maybe", "raw", "picture", "mixed")),
    tool("maybe", value=3),
    *(tool(name) for name in ("whole", "failed", "declared", "crashes", "foreseen", "unresolved", "again", "logs")),
    tool("generated", count=3),
    tool("depends", owner="ada"),
    tool("remembers", value="one"),
    tool("remembers", value="two"),
    tool("reads", uri="data://json"),
    tool("reads", uri="items://tea"),
    tool("apart", word="x"),
    *(read(f"data://{name}") for name in ("plain", "json", "result", "contents", "fails")),
    *(read(uri) for uri in ("items://tea", "squares://4", "squares://four", "search://x", "search://x?limit=3")),
    *(read(uri) for uri in ("text://fixed", "file:///this")),
    filled("bare", topic="rain"),
    filled("bare"),
    filled("conversation", count="3", flag="true"),
    filled("conversation", count="three"),
    *(filled(name) for name in ("results", "breaks", "later")),
    completed({"type": "ref/prompt", "name": "bare"}, "topic"),
    completed({"type": "ref/prompt", "name": "conversation"}, "count"),
    completed({"type": "ref/resource", "uri": "items://{name}"}, "name"),
]

DIFFERENCES = {
    "code": "codes of failed prompts and resources are the runtime's",
    "data": "the URI of a failed reading is told as data",
    "isError": "false is left out, which is its default",
}


CLIENT = {
    f"io.modelcontextprotocol/{name}": value
    for name, value in {
        "protocolVersion": MODERN,
        "clientInfo": {"name": "test", "version": "1"},
        "clientCapabilities": {},
        "logLevel": "debug",
    }.items()
}
"""The client's facts in each request of 2026-07-28."""


@contextmanager
def program(face: str) -> Iterator[subprocess.Popen[str]]:
    """The server, over stdio."""
    running = subprocess.Popen(
        [str(interpreter(FASTMCP_4)), str(SERVER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={
            **os.environ,
            "FACE": face,
            "PYTHONPATH": str(ROOT / "python"),
            "FASTMCP_SHOW_SERVER_BANNER": "false",
            "FASTMCP_LOG_ENABLED": "false",
        },
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate(timeout=30)


def ask(running: subprocess.Popen[str], number: int, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request, with what was said ahead of it."""
    assert running.stdin is not None and running.stdout is not None
    running.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **request}) + "\n")
    running.stdin.flush()
    ahead = []
    for line in running.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            answer = {key: value for key, value in message.items() if key not in ("jsonrpc", "id")}
            return answer | ({"ahead": ahead} if ahead else {})
        ahead.append({key: value for key, value in message.items() if key != "jsonrpc"})
    raise AssertionError(f"the server ended before it answered {request}")


def answers(face: str, revision: str) -> list[dict[str, Any]]:
    with program(face) as running:
        if revision == MODERN:
            told = [{**one, "params": {**one.get("params", {}), "_meta": CLIENT}} for one in REQUESTS]
            return [alike(ask(running, number, one)) for number, one in enumerate(told, 1)]
        ask(running, 0, INITIALIZE)
        assert running.stdin is not None
        running.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return [alike(ask(running, number, one)) for number, one in enumerate(REQUESTS, 1)]


def alike(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what differs on purpose."""
    error = answer.get("error")
    if error is not None:
        return {"error": error["message"]}
    result = {key: value for key, value in answer["result"].items() if (key, value) != ("isError", False)}
    meta = {key: value for key, value in result.pop("_meta", {}).items() if not key.startswith("io.modelcontext")}
    return {**answer, "result": result | ({"_meta": meta} if meta else {})}


@pytest.fixture(scope="module", params=[LEGACY, MODERN])
def both(request: pytest.FixtureRequest) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return answers("fastmcp", request.param), answers("mcpace", request.param)


@pytest.mark.parametrize("number", range(len(REQUESTS)), ids=lambda number: f"{number}-{REQUESTS[number]['method']}")
def test_both_answer_alike(number: int, both: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    theirs, ours = both[0][number], both[1][number]
    if isinstance(theirs.get("result"), dict):
        for member in ("tools", "resources", "resourceTemplates", "prompts"):
            # A list entry by entry: pytest then shows the one that differs.
            pairs = zip(theirs["result"].get(member, []), ours["result"].get(member, []), strict=True)
            for their, our in pairs:
                assert our == their
    assert ours == theirs, REQUESTS[number]
