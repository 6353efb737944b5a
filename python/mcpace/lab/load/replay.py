"""Reads the requests of a recording for a load that replays them in order, each user in its own session.

Parts that belong to the recorded conversation are left out: handshakes, notifications, answers, ids, session ids, the
recorder's own metadata. Requests whose bodies were cut can't be sent again; they are counted and reported.
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
"""Most requests of a replay: each has its own histograms in the engine."""
REDACTED = "[redacted "


@dataclass(frozen=True)
class Replay:
    """Requests of a recording that can be sent again."""

    operations: tuple[Operation, ...]
    cut: int
    """Number of requests whose bodies were cut."""
    redacted: int
    """Number of requests with redacted values. The redacted text is sent as recorded."""


def read_replay(path: Path) -> Replay:
    """Reads a recording of ``mcpace record``.

    Raises :class:`UsageProblem` where the file is not a recording or has no request that can be sent again.
    """
    if not path.is_file():
        raise UsageProblem(f"--replay: there is no file {path}")
    try:
        events = _core.Recording.load(str(path)).events()
    except _core.Problem as problem:
        raise UsageProblem(f"--replay {path}: {problem}") from problem
    operations: list[Operation] = []
    cut = redacted = 0
    for message, text in _client_requests(events):
        if message is None:
            cut += 1
        elif message["method"] not in HANDSHAKES:
            operations.append(_replayed_operation(message))
            redacted += REDACTED in text
    if not operations:
        why = f": none of its {cut} requests was kept whole (record with a larger --body-limit)" if cut else ""
        raise UsageProblem(f"--replay {path}: it holds no request to send again{why}")
    if len(operations) > MOST:
        raise UsageProblem(f"--replay {path}: {len(operations)} requests are more than the {MOST} that can be replayed")
    return Replay(tuple(operations), cut, redacted)


def _client_requests(events: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any] | None, str]]:
    """Yields each request of the client with its text; ``None`` for a request whose body was cut."""
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


def _replayed_operation(message: dict[str, Any]) -> Operation:
    params = message.get("params")
    params = dict(params) if isinstance(params, dict) else {}
    meta = params.pop("_meta", None)
    replayed = {name: value for name, value in meta.items() if _is_replayed(name)} if isinstance(meta, dict) else {}
    if replayed:
        params["_meta"] = replayed
    method = message["method"]
    named = params.get("name") if method == "tools/call" else None
    return Operation(name=str(named or method), kind="raw", method=method, params=params)


def _is_replayed(name: str) -> bool:
    """Whether a member of ``_meta`` is replayed.

    A progress token must differ between users, and the engine sets the protocol's own members itself.
    """
    return name != "progressToken" and not name.startswith(OURS)
