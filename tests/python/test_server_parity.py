"""The same server, written once, run with the official SDK and with mcpace: every reply is compared, in both eras.

The servers and their dialogues are in `tests/server/parity/servers`. What differs on purpose is listed here, each with
its reason; a difference that is no longer there fails too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PARITY = ROOT / "tests" / "server" / "parity"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
ORIGINAL = TARGET / "interop" / "official-2.3.0"
RELEASE = "mcp==2.3.0"
LIMIT_S = 300
SERVERS = sorted(file.stem for file in (PARITY / "servers").glob("*.py"))
ERAS = ("legacy", "modern")

SERVER_INFO = "io.modelcontextprotocol/serverInfo"

# By server, era and request's index: the members that differ, and why. `*` stands for any era.
PROMPT_CODE = "the SDK answers JSON-RPC code 0, or a bare 'Internal server error', where a code and words are to be had"
UNKNOWN_TOOL = "an unknown tool is a protocol error (-32602), as since 2025-11-25, and no result"
NO_OBJECT = "arguments that are no object are refused in the words of our own parser"
DIFFERENCES: dict[tuple[str, str, int], tuple[set[str], str]] = {}


@pytest.fixture(scope="session")
def original() -> dict[str, Any]:
    """What the official SDK replies."""
    uv = shutil.which("uv") or str(ROOT / ".venv" / "bin" / "uv")
    interpreter = ORIGINAL / "bin" / "python"
    mark = ORIGINAL / "installed"
    if not mark.exists() or mark.read_text() != RELEASE:
        run([uv, "venv", "--quiet", "--clear", "--python", "3.11", str(ORIGINAL)])
        run([uv, "pip", "install", "--quiet", "--python", str(interpreter), RELEASE])
        mark.write_text(RELEASE)
    return replies(str(interpreter), "mcp")


@pytest.fixture(scope="session")
def ours() -> dict[str, Any]:
    """What mcpace replies."""
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
        allowed, reason = DIFFERENCES.get((name, era, index), DIFFERENCES.get((name, "*", index), (set(), "")))
        differing = set(differences(expected, found))
        if differing != allowed:
            wrong.append(
                f"{index} {json.dumps(request)}: differs in {sorted(differing)}, expected {sorted(allowed)} {reason}"
            )
            wrong.append(f"    SDK  {json.dumps(expected)[:2000]}")
            wrong.append(f"    ours {json.dumps(found)[:2000]}")
    assert not wrong, "\n".join(wrong)


def test_every_listed_difference_is_of_a_request_that_there_is(ours: dict[str, Any]) -> None:
    for name, _, index in DIFFERENCES:
        assert index < len(ours["dialogues"][name])


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
