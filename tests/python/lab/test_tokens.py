"""Counts of tokens, against those of tiktoken 0.14 over the published ranks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from mcpace.lab import token_findings, tokens
from mcpace.report.model.run import Case, Subject
from mcpace.report.model.tokens import ToolTokens

TEXTS = (
    ("hello world", 2, 2),
    ("Return the sum of two numbers.", 7, 7),
    ('{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}', 19, 18),
    ("Überraschung: 你好, мир 🧠", 11, 15),
    # A special token in a peer's text is ordinary text.
    ("<|endoftext|>", 7, 7),
    ("", 0, 0),
)


@pytest.mark.parametrize(("text", "o200k", "cl100k"), TEXTS)
def test_counts_are_those_of_tiktoken(text: str, o200k: int, cl100k: int) -> None:
    assert tokens.count_tokens([text]) == [o200k]
    assert tokens.count_tokens([text], "cl100k_base") == [cl100k]


def test_a_tool_counts_what_hosts_give_to_the_model() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    plain = {"name": "read", "description": "Return the sum of two numbers.", "inputSchema": schema}
    found, more = tokens.tool_tokens([plain, {**plain, "outputSchema": schema, "_meta": {"x": "y" * 999}}])
    assert (found.name, found.description, found.input_schema, found.output_schema) == ("read", 7, 19, 0)
    assert found.tokens > 7 + 19
    assert (more.tokens, more.output_schema) == (found.tokens, 19)
    assert more.bytes > found.bytes + 999


def test_a_result_counts_its_text_and_else_its_structure() -> None:
    text = {"type": "text", "text": "hello world"}
    assert tokens.result_tokens({"content": [text, text], "structuredContent": {"a": 1}}) == 4
    assert tokens.result_tokens({"content": [{"type": "resource", "resource": {"text": "hello world"}}]}) == 2
    assert tokens.result_tokens({"content": [], "structuredContent": "hello world"}) == 4
    assert tokens.result_tokens({"content": [{"type": "image", "data": "A" * 999}]}) == 0


def test_half_of_a_surrogate_pair_is_counted_and_does_not_fail() -> None:
    assert tokens.tool_tokens([{"name": "a", "description": "\ud83d"}])[0].tokens > 0


def nested(depth: int, text: str) -> dict[str, object]:
    schema: dict[str, object] = {"type": "string", "description": text}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


def test_repeated_schemas_of_a_hostile_server_are_compared_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds are counted, not timed: characters that are written, and parts that are counted."""
    written, counted = [], []
    count_tokens, dumps = tokens.count_tokens, json.dumps

    def record_text(value: object, **options: Any) -> str:
        text = dumps(value, **options)
        written.append(len(text))
        return text

    def record_counts(texts: Sequence[str]) -> list[int]:
        counted.append(len(texts))
        return count_tokens(texts)

    monkeypatch.setattr(token_findings.json, "dumps", record_text)
    monkeypatch.setattr(tokens, "count_tokens", record_counts)
    deep = {"name": "deep", "inputSchema": nested(200, "a path of a file " * 20_000)}
    wide = {f"w{number}": nested(0, f"the argument number {number} of this tool") for number in range(1_000)}
    for listing in (
        [deep] * 50,
        [{"name": "wide", "inputSchema": {"properties": {**wide, "own": n}}} for n in range(2)],
    ):
        tools = [ToolTokens(name="a", tokens=9, description=0, input_schema=9, output_schema=0, bytes=9)]
        case = Case(subject=Subject(sdk="mcpace-client"), target="a", operation="list", tools=tools)
        written.clear()
        token_findings.add_findings([case], listing)
        assert sum(written) < 2 * token_findings.MOST_CHARACTERS
    assert counted == [token_findings.MOST_REPEATED]
    [found] = [one for one in case.findings if one.code == "duplicate-schema"]
    assert found.context["tools"] == 2
