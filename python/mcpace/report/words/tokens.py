"""The sentences on tokens: of results, and of a gate's limits."""

from __future__ import annotations

from mcpace.report.model.run import Case, Run
from mcpace.report.model.tokens import TokenLimit
from mcpace.report.words.quantities import clean, count, join_words
from mcpace.report.words.start import short_name

ENCODING = "o200k_base"
"""Encoding of counted tokens: that of OpenAI's models since GPT-4o."""
MOST_TOOLS = 8
"""Tools whose results one sentence names."""


def result_words(case: Case) -> str:
    """``The largest result of search takes 1,203 tokens (o200k_base)``; empty where none was counted."""
    counts = sorted(case.tokens_by_tool.items(), key=lambda one: -one[1])
    parts = [
        f"of {clean(tool, 40)} {'' if at else 'takes '}{count(number, 'token')}"
        for at, (tool, number) in enumerate(counts[:MOST_TOOLS])
    ]
    if not parts:
        return ""
    which = "A result" if case.load is not None else "The largest result"
    return f"{which} {join_words(parts)} ({ENCODING})"


def sentences(run: Run) -> list[str]:
    """A sentence for each limit, those that are not met first."""
    return [limit_words(limit) for limit in sorted(run.limits, key=lambda one: one.is_met)]


def limit_words(limit: TokenLimit) -> str:
    """``The tools of playwright take 5,080 tokens, above the limit of 4,000; browser_fill takes most.``"""
    largest = clean(limit.largest, 60)
    who = short_name(limit.target) if limit.target else ""
    if limit.value is None:
        what = "list of tools" if limit.subject == "listing" else "result of a tool"
        hint = "" if limit.subject == "listing" else ": name a tool with --tool"
        return f"No {what}{f' of {who}' if who else ''} was counted for the limit of {limit.limit:,} tokens{hint}."
    side = "within" if limit.is_met else "above"
    if limit.subject == "listing":
        most = f"; {largest} takes most" if largest and not limit.is_met else ""
        return f"The tools of {who} take {limit.value:,} tokens, {side} the limit of {limit.limit:,}{most}."
    result = f"The largest result of {largest} at {who} has"
    if limit.at_least:
        side = "so that it is unknown whether it is within" if limit.value <= limit.limit else "above"
        return (
            f"{result} at least {limit.value:,} tokens, {side} the limit of {limit.limit:,}: the recording has only a "
            "part of it. Record with a larger --body-limit."
        )
    return f"{result} {limit.value:,} tokens, {side} the limit of {limit.limit:,}."
