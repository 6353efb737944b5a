"""Servers that run unchanged with the official SDK and with mcpace: every reply is compared, in both eras.

The servers and their dialogues are in `tests/server/parity/servers`. Intended differences are listed here, each with
its reason; a listed difference that no longer exists fails, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from support import interop

PARITY = interop.ROOT / "tests" / "server" / "parity"
LIMIT_S = 300
SERVERS = sorted(file.stem for file in (PARITY / "servers").glob("*.py"))
ERAS = ("legacy", "modern")

SERVER_INFO = "io.modelcontextprotocol/serverInfo"


@dataclass(frozen=True)
class Difference:
    """An intended difference in some replies: its reason, and the members that differ."""

    reason: str
    paths: frozenset[str]
    applies: Callable[[str, str, Any], bool]
    """Whether the difference applies, by era, method of the request and reply of the official SDK."""


def message(reply: Any) -> str:
    error: str = reply.get("error", {}).get("message", "")
    return error


def told(reply: Any) -> str:
    content = reply.get("result", {}).get("content") or [{}]
    text: str = content[0].get("text", "")
    return text


DIFFERENCES = [
    Difference(
        "an unknown tool is a protocol error (2025-11-25, server/tools, 'Error Handling'), and no result",
        frozenset({"/0/error", "/0/result"}),
        lambda era, method, reply: told(reply).startswith("Unknown tool:"),
    ),
    Difference(
        "arguments that are no object are refused in our own parser's words",
        frozenset({"/0/error/message", "/0/error/data", "/0/status"}),
        lambda era, method, reply: message(reply) == "Invalid request parameters",
    ),
    Difference(
        "a resource that nothing matches is the runtime's to refuse, in legacy revisions with their own code (-32002)",
        frozenset({"/0/error/message", "/0/error/code", "/0/status"}),
        lambda era, method, reply: message(reply) in ("Unknown resource: other://x", "Unknown resource: nowhere://x"),
    ),
    Difference(
        "wrong parameters of a known method are HTTP 200 here, 400 there: the specification leaves it open",
        frozenset({"/0/status"}),
        lambda era, method, reply: method == "resources/read" and reply.get("status") == 400,
    ),
    Difference(
        "a prompt's failure has a JSON-RPC code and words: the SDK answers code 0, or that something went wrong",
        frozenset({"/0/error/message", "/0/error/code"}),
        lambda era, method, reply: method == "prompts/get" and reply.get("error", {}).get("code") in (0, -32603),
    ),
    Difference(
        "a client that can't be asked is told so in other words",
        frozenset({"/0/error/message"}),
        lambda era, method, reply: (
            "no back-channel" in message(reply) or message(reply).startswith("Client did not declare")
        ),
    ),
    Difference(
        "a round of questions in a revision without rounds is the author's mistake, in other words",
        frozenset({"/0/error/message"}),
        lambda era, method, reply: message(reply) == "Handler returned an invalid result",
    ),
    Difference(
        "the schema of a content block has our own descriptions",
        frozenset(
            {f"/0/result/tools/8/outputSchema/{path}" for path in ("description", "$defs/Annotations/description")}
        ),
        lambda era, method, reply: any(tool["name"] == "forced" for tool in reply.get("result", {}).get("tools", ())),
    ),
]


@pytest.fixture(scope="session")
def original() -> dict[str, Any]:
    """Replies of the official SDK."""
    return replies(interop.official(), "mcp")


@pytest.fixture(scope="session")
def ours() -> dict[str, Any]:
    """Replies of mcpace."""
    return replies(sys.executable, "mcpace")


@pytest.mark.network
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", SERVERS)
def test_replies_are_the_original_s(name: str, era: str, original: dict[str, Any], ours: dict[str, Any]) -> None:
    requests = ours["dialogues"][name]
    assert requests == original["dialogues"][name]
    wrong = []
    for index, request in enumerate(requests):
        expected = [comparable(reply) for reply in original["replies"][name][era][index]]
        found = [comparable(reply) for reply in ours["replies"][name][era][index]]
        allowed = frozenset[str]()
        for difference in DIFFERENCES:
            if not allowed and difference.applies(era, request[0], expected[0]):
                allowed = difference.paths
        differing = set(differences(expected, found))
        # A listed difference must exist; one that no longer exists has to be removed from the list.
        if not differing <= allowed or (allowed and not differing):
            wrong += [
                f"{index} {json.dumps(request)} differs in {sorted(differing)}, may in {sorted(allowed)}",
                f"    SDK  {json.dumps(expected)[:2000]}",
                f"    ours {json.dumps(found)[:2000]}",
            ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.network
def test_every_listed_difference_is_there(original: dict[str, Any]) -> None:
    for difference in DIFFERENCES:
        assert any(
            difference.applies(era, request[0], rounds[0])
            for name in SERVERS
            for era in ERAS
            for request, rounds in zip(original["dialogues"][name], original["replies"][name][era], strict=True)
        ), difference.reason


def comparable(reply: dict[str, Any]) -> dict[str, Any]:
    """A reply without what is each server's own: its name and version, and the sealed state of rounds.

    `isError: false` is what its absence means; the runtime leaves it out.
    """
    result = reply.get("result")
    if isinstance(result, dict):
        meta = result.get("_meta", {})
        meta.pop(SERVER_INFO, None)
        if not meta:
            result.pop("_meta", None)
        if "content" in result:
            result.setdefault("isError", False)
        if "requestState" in result:
            result["requestState"] = "sealed"
    return reply


def differences(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """Where two replies differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected.keys() | found.keys():
            if key not in expected or key not in found:
                yield f"{path}/{key}"
            else:
                yield from differences(expected[key], found[key], f"{path}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{path}/{index}")
    elif type(expected) is not type(found) or expected != found:
        yield path


def replies(interpreter: str, face: str) -> dict[str, Any]:
    done = run([interpreter, str(PARITY / "talk.py")], {"FACE": face})
    found: dict[str, Any] = json.loads(done)
    return found


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, **(environment or {})},
        cwd=PARITY,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout
