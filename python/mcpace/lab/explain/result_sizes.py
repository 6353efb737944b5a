"""Tokens and bytes of the results of tools in a recording.

Design constraint: the time is bounded. A recording with more than ``MOST_EVENTS`` events is not read for it. A
sample of the results of each tool is counted: the largest, and others spread evenly over the recording. A result whose
text the recorder cut has at least the tokens of its recorded part. One whose text it did not keep has bytes and no
tokens.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import from_json

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

    sizes: list[int] = field(default_factory=list)
    """Bytes of each reply."""
    kept: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Bytes of each reply of which at least a part was recorded, and its result, as far as it was recorded."""
    cut: int = 0
    """Number of replies without their whole text."""


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
        for size, result in _sample(found.kept):
            if size > room:
                continue
            room -= size
            counts.append(tokens.result_tokens(result) or 0)
        counted[tool] = ResultTokens(
            results=len(found.sizes),
            cut=found.cut,
            counted=len(counts),
            median=round(statistics.median(counts)) if counts else None,
            largest=max(counts) if counts else None,
            median_bytes=round(statistics.median(found.sizes)),
            largest_bytes=max(found.sizes),
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
                for message, result, is_whole in _answers(facts):
                    tool = asked.pop((facts.get("ex"), message["id"]), None)
                    if tool is None:
                        continue
                    results = found.setdefault(tool, ToolResults())
                    results.sizes.append(facts["bytes"])
                    results.cut += not is_whole
                    results.kept += [] if result is None else [(facts["bytes"], result)]
    return found


def _answers(facts: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None, bool]]:
    """The outline of each result in a reply, the result as far as it was recorded (``None`` where nothing was), and
    whether it is whole.
    """
    outlines = [one for one in facts.get("messages", ()) if one["kind"] == "result" and "id" in one]
    body = facts.get("body") or {}
    is_cut = bool(body.get("cut"))
    parsed: Any = None
    if outlines and "text" in body:
        try:
            parsed = from_json(body["text"], allow_partial="trailing-strings" if is_cut else False)
        except ValueError:
            parsed = None
    messages = parsed if isinstance(parsed, list) else [parsed]
    by_id = {json.dumps(one.get("id")): one.get("result") for one in messages if isinstance(one, dict)}
    for outline in outlines:
        # A message that was cut may have its id behind its result.
        key = "null" if is_cut and len(messages) == 1 and outline["id"] not in by_id else outline["id"]
        result = by_id.get(key)
        yield outline, result if isinstance(result, dict) else None, isinstance(result, dict) and not is_cut
