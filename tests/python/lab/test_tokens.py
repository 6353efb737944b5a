"""Counts of tokens, against those of tiktoken 0.14 over the published ranks."""

from __future__ import annotations

import pytest

from mcpace.lab import tokens

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
