"""The type of a finding's words, and functions that read a finding's context.

Design constraint: a missing member of the context (an older or newer Run) only makes a sentence shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpace.report.model.run import Finding
from mcpace.report.words.quantities import count

Context = Mapping[str, Any]


@dataclass(frozen=True)
class Words:
    """What is said about one code."""

    title: str
    """A heading."""
    clause: str
    """The cause as a main clause, for the verdict: ``every request is sent twice``."""
    explain: Callable[[Finding], str]
    """One or two sentences of what was seen, with figures."""
    advise: str | Callable[[Context], str]
    """One sentence of what to do; made of the context where that decides."""


def calls(finding: Finding, verb: str = "") -> str:
    """``Each call was``, ``2 of 5 calls were``, with the verb's participle where one is given."""
    verb = f" {verb}" if verb else ""
    if finding.calls == finding.of_calls:
        return f"Each call was{verb}"
    return f"{finding.calls} of {count(finding.of_calls, 'call')} {'was' if finding.calls == 1 else 'were'}{verb}"


def number(context: Context, name: str) -> float | None:
    value = context.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def time(context: Context, name: str) -> float | None:
    nanos = number(context, name)
    return None if nanos is None else nanos / 1e9


def between(finding: Finding, earlier: str, later: str) -> float | None:
    """Seconds between the first events of two roles; ``None`` where the evidence has not both in this order."""
    first = {item.role: item.at_s for item in reversed(finding.evidence)}
    if earlier not in first or later not in first or first[later] <= first[earlier]:
        return None
    return first[later] - first[earlier]
