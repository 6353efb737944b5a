"""A recording's requests as load: in order, each user in a session of its own.

What belongs to one conversation stays behind: handshakes, notifications, answers, ids, session ids, the recorder's own
metadata. Requests whose bodies were not kept whole can't be sent again; they are counted and told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpace import _core
from mcpace.lab.errors import UsageProblem
from mcpace.lab.load.plan import Operation

HANDSHAKES = {"initialize", "server/discover"}
OURS = ("io.modelcontextprotocol/", "dev.mcpace/")
MOST = 1_000
"""Each has histograms of its own in the engine."""
REDACTED = "[redacted "


@dataclass(frozen=True)
class Replay:
    """What of a recording can be sent again."""

    operations: tuple[Operation, ...]
    cut: int
    """Requests that were not kept whole."""
    redacted: int
    """Requests that hold redacted values, which are sent as they stand in the recording."""


def read(path: Path) -> Replay:
    """Reads a recording of ``mcpace record``.

    Raises :class:`UsageProblem` where it is none or holds no request that can be sent again.
    """
    if not path.is_file():
        raise UsageProblem(f"--replay: there is no file {path}")
    try:
        events = _core.Recording.load(str(path)).events()
    except _core.Problem as problem:
        raise UsageProblem(f"--replay {path}: {problem}") from problem
    operations: list[Operation] = []
    cut = redacted = 0
    for message, text in _requests(events):
        if message is None:
            cut += 1
        elif message["method"] not in HANDSHAKES:
            operations.append(_operation(message))
            redacted += REDACTED in text
    if not operations:
        why = f": none of its {cut} requests was kept whole (record with a larger --body-limit)" if cut else ""
        raise UsageProblem(f"--replay {path}: it holds no request to send again{why}")
    if len(operations) > MOST:
        raise UsageProblem(f"--replay {path}: {len(operations)} requests are more than the {MOST} that can be replayed")
    return Replay(tuple(operations), cut, redacted)


def _requests(events: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any] | None, str]]:
    """Each of the client's requests with its text, ``None`` for one that wasn't kept whole."""
    for entry in events:
        fact = entry["event"].get("request-end") or _from_client(entry["event"].get("stdio-line"))
        if not fact or not any(message.get("kind") == "request" for message in fact.get("messages") or []):
            continue
        body = fact.get("body") or {}
        if body.get("cut") or "text" not in body:
            yield None, ""
            continue
        try:
            whole = json.loads(body["text"])
        except (ValueError, RecursionError):
            yield None, ""
            continue
        for message in whole if isinstance(whole, list) else [whole]:
            if isinstance(message, dict) and "id" in message and isinstance(message.get("method"), str):
                yield message, body["text"]


def _from_client(fact: dict[str, Any] | None) -> dict[str, Any] | None:
    return fact if fact and fact.get("from") == "client" else None


def _operation(message: dict[str, Any]) -> Operation:
    params = message.get("params")
    params = dict(params) if isinstance(params, dict) else {}
    meta = params.pop("_meta", None)
    kept = {name: value for name, value in meta.items() if _goes_on(name)} if isinstance(meta, dict) else {}
    if kept:
        params["_meta"] = kept
    method = message["method"]
    named = params.get("name") if method == "tools/call" else None
    return Operation(name=str(named or method), kind="raw", method=method, params=params)


def _goes_on(name: str) -> bool:
    """A progress token would be the same for every user; the rest of ours is the engine's to say."""
    return name != "progressToken" and not name.startswith(OURS)
