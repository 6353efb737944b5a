"""Findings that counts of tokens prove: ``verbose-tool``, ``huge-result`` and ``duplicate-schema``.

The rules are here and not in ``crates/explain``, because they need the tokenizer, which is a Python package
(docs/decisions/021).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from mcpace.lab import tokens
from mcpace.report.model.context import Context
from mcpace.report.model.contexts import DuplicateSchema, HugeResult, VerboseTool
from mcpace.report.model.run import Case, Finding
from mcpace.report.model.tokens import ToolTokens
from mcpace.report.words import findings

VERBOSE = (1_500, 4_000)
"""Tokens from which on a tool is verbose, and very verbose. Tools of popular servers have 130 in the median."""
HUGE = (10_000, 25_000)
"""Tokens from which on a result is huge, and very huge. Claude Code warns at the first and refuses the second."""
REPEATED = (1_000, 4_000)
"""Repeated tokens of a listing from which on it is named."""
LEAST_PART = 40
"""Characters of the smallest part of a schema that counts as repeated."""
MOST_CHARACTERS = 8_000_000
"""Characters of all parts of a listing that are compared. Parts lie within parts, so a deep schema has many."""
MOST_REPEATED = 200
"""Repeated parts that are counted, the largest: each is looked for in all others."""


def add_findings(cases: Sequence[Case], listing: Sequence[Mapping[str, Any]] | None) -> None:
    """Adds the findings of one server to its cases. ``listing``: its tools, as the server describes them."""
    for case in cases:
        if case.operation == "list" and case.tools:
            case.findings += [*_verbose_tool(case.tools), *_duplicate_schema(case.tools, listing or [])]
        elif case.operation == "call" and case.result_tokens is not None and case.tool is not None:
            case.findings += _huge_result(case.tool, case.result_tokens)


def add_result_findings(cases: Sequence[Case], results: Mapping[str, int], at_least: Collection[str] = ()) -> None:
    """Adds the findings about results of tools to the case of the tool's calls, if there is one, else to the first case
    of calls. ``results``: tokens of the largest known result of each tool. ``at_least``: tools of which this is a lower
    bound.
    """
    of_calls = [case for case in cases if case.operation == "call"]
    for tool, largest in results.items():
        case = next((one for one in of_calls if one.tool == tool), next(iter(of_calls), None))
        if case is not None:
            case.findings += _huge_result(tool, largest, at_least=tool in at_least)


def _verbose_tool(tools: Sequence[ToolTokens]) -> Iterator[Finding]:
    largest = max(tools, key=lambda tool: tool.tokens)
    if largest.tokens >= VERBOSE[0]:
        facts = VerboseTool(
            tool=largest.name,
            tokens=largest.tokens,
            description_tokens=largest.description,
            input_schema_tokens=largest.input_schema,
            listing_tokens=sum(tool.tokens for tool in tools),
            verbose_tools=sum(tool.tokens >= VERBOSE[0] for tool in tools),
        )
        yield _finding(facts, largest.tokens >= VERBOSE[1])


def _huge_result(tool: str, count: int, *, at_least: bool = False) -> Iterator[Finding]:
    if count >= HUGE[0]:
        facts = HugeResult(tool=tool, tokens=count, at_least=at_least or None)
        yield _finding(facts, count >= HUGE[1])


def _duplicate_schema(tools: Sequence[ToolTokens], listing: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    seen: dict[str, tuple[str, int]] = {}
    """For each part of a schema as JSON, the member that has it and the number of tools with it."""
    room = MOST_CHARACTERS
    for tool in listing:
        parts: dict[str, str] = {}
        for text, member in _schema_parts("inputSchema", tool.get("inputSchema")):
            room -= len(text)
            if room < 0:
                break
            parts[text] = member
        for text, member in parts.items():
            seen[text] = (seen.get(text, (member, 0))[0], seen.get(text, (member, 0))[1] + 1)
        if room < 0:
            break
    largest = sorted((text for text, found in seen.items() if found[1] > 1), key=len, reverse=True)
    repeated = {text: seen[text] for text in largest[:MOST_REPEATED]}
    # A part of a repeated part is repeated with it, and counts once.
    whole = {text: found for text, found in repeated.items() if not _is_inside(text, found[1], repeated)}
    if not whole:
        return
    counts = dict(zip(whole, tokens.count_tokens(list(whole)), strict=True))
    total = sum(counts[text] * (number - 1) for text, (_, number) in whole.items())
    if total < REPEATED[0]:
        return
    worst = max(whole, key=lambda text: counts[text] * (whole[text][1] - 1))
    facts = DuplicateSchema(
        member=whole[worst][0],
        tools=whole[worst][1],
        tokens=counts[worst],
        repeated_tokens=total,
        listing_tokens=sum(tool.tokens for tool in tools),
    )
    yield _finding(facts, total >= REPEATED[1])


def _schema_parts(name: str, schema: object) -> Iterator[tuple[str, str]]:
    """The objects within a schema as JSON, each with the name of its member. Schemas are JSON of bounded depth."""
    waiting = [(name, schema)]
    while waiting:
        member, value = waiting.pop()
        if isinstance(value, dict):
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            if len(text) >= LEAST_PART:
                yield text, member
            waiting += list(value.items())
        elif isinstance(value, list):
            waiting += [(member, one) for one in value]


def _is_inside(text: str, number: int, repeated: Mapping[str, tuple[str, int]]) -> bool:
    return any(text != other and number <= found[1] and text in other for other, found in repeated.items())


def _finding(facts: Context, is_grave: bool) -> Finding:
    return Finding(
        code=facts.code,
        severity="medium" if is_grave else "low",
        confidence="high",
        confidence_reason="tokens-counted",
        cost_s=0.0,
        calls=1,
        of_calls=1,
        context=facts.facts(),
        disproof="count-tokens",
        advice=findings.advice_for(facts.code, facts.facts()),
    )
