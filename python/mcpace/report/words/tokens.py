"""The sentences on a gate's limits on tokens."""

from __future__ import annotations

from mcpace.report.model.run import Run
from mcpace.report.model.tokens import TokenLimit
from mcpace.report.words.quantities import clean
from mcpace.report.words.start import short_name


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
    return f"The largest result of {largest} at {who} has {limit.value:,} tokens, {side} the limit of {limit.limit:,}."
