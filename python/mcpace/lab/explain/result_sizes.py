"""Tokens and bytes of the results of tools in a recording.

Design constraint: the time is bounded. A recording with more than ``MOST_EVENTS`` events is not read for it. A
sample of the results of each tool is counted: the largest, and others spread evenly over the recording. Results whose
text the recorder cut, or did not keep, have bytes and no tokens.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpace import _core
from mcpace.lab import tokens
from mcpace.report.model.tokens import ResultTokens

MOST_EVENTS = 200_000
"""Events of a recording beyond which its results are not counted."""
MOST_RESULTS = 100
"""Results of one tool whose tokens are counted."""
MOST_BYTES = 8_000_000
"""Bytes of all results whose tokens are counted. The tokenizer takes about a second for as many."""


@dataclass
class ToolResults:
    """The results of one tool, in the order of the recording."""

    whole: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Bytes of each reply, and its result."""
    cut: list[int] = field(default_factory=list)
    """Bytes of replies without their whole text."""


def result_tokens(file: Path, events: int) -> dict[str, ResultTokens]:
    """Tokens and bytes of the results of each tool. Empty without a tokenizer, and for a recording that is too large.

    ``events``: number of the recording's events.
    """
    if events > MOST_EVENTS or not tokens.has_tokenizer():
        return {}
    results = _results_by_tool(_core.Recording.load(str(file)).events())
    counted: dict[str, ResultTokens] = {}
    room = MOST_BYTES
    for tool, found in results.items():
        counts = []
        for size, result in _sample(found.whole):
            if size > room:
                continue
            room -= size
            counts.append(tokens.result_tokens(result) or 0)
        sizes = [*found.cut, *(size for size, _ in found.whole)]
        counted[tool] = ResultTokens(
            results=len(sizes),
            cut=len(found.cut),
            counted=len(counts),
            median=round(statistics.median(counts)) if counts else None,
            largest=max(counts) if counts else None,
            median_bytes=round(statistics.median(sizes)) if sizes else None,
            largest_bytes=max(sizes) if sizes else None,
        )
    return counted


def _sample(results: Sequence[tuple[int, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
    """At most ``MOST_RESULTS`` results, the largest first."""
    if len(results) <= MOST_RESULTS:
        return sorted(results, key=lambda one: -one[0])
    largest = max(range(len(results)), key=lambda at: results[at][0])
    step = len(results) / (MOST_RESULTS - 1)
    places = {int(at * step) for at in range(MOST_RESULTS - 1)} - {largest}
    return [results[largest], *(results[at] for at in sorted(places))]


def _results_by_tool(events: Sequence[dict[str, Any]]) -> dict[str, ToolResults]:
    asked: dict[tuple[Any, str], str] = {}
    """The tool of each request without an answer, by its exchange (none over stdio) and id."""
    found: dict[str, ToolResults] = {}
    for event in events:
        for kind, facts in event["event"].items():
            if kind == "request-end" or (kind == "stdio-line" and facts["from"] == "client"):
                for message in facts.get("messages", ()):
                    if message.get("method") == "tools/call" and "id" in message and message.get("name"):
                        asked[facts.get("ex"), message["id"]] = message["name"]
            elif kind in ("reply-event", "reply-end") or (kind == "stdio-line" and facts["from"] == "server"):
                for message, result in _answers(facts):
                    tool = asked.pop((facts.get("ex"), message["id"]), None)
                    if tool is None:
                        continue
                    results = found.setdefault(tool, ToolResults())
                    if result is None:
                        results.cut.append(facts["bytes"])
                    else:
                        results.whole.append((facts["bytes"], result))
    return found


def _answers(facts: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """The outline of each result in a reply, with the result; ``None`` where its text is not whole."""
    outlines = [one for one in facts.get("messages", ()) if one["kind"] == "result" and "id" in one]
    if not outlines:
        return
    body = facts.get("body")
    parsed: Any = None
    if body is not None and not body.get("cut"):
        try:
            parsed = json.loads(body["text"])
        except (ValueError, RecursionError):
            parsed = None
    messages = parsed if isinstance(parsed, list) else [parsed]
    by_id = {json.dumps(one.get("id")): one.get("result") for one in messages if isinstance(one, dict)}
    for outline in outlines:
        result = by_id.get(outline["id"])
        yield outline, result if isinstance(result, dict) else None
