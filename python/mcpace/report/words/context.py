"""The type of a finding's words, and helpers that read a finding.

Design constraint: a missing member of the context (an older or newer Run) only makes a sentence shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mcpace.report.model.context import Context
from mcpace.report.model.run import Finding
from mcpace.report.words.quantities import count, duration

Facts = TypeVar("Facts", bound=Context)


@dataclass(frozen=True)
class Words(Generic[Facts]):
    """The words for findings with one kind of context."""

    context: type[Facts]
    title: str
    """A heading."""
    clause: str
    """The cause as a main clause, for the verdict: ``every request is sent twice``."""
    explain: Callable[[Finding, Facts], str]
    """Returns one or two sentences that describe the observation, with figures."""
    advise: str | Callable[[Facts], str]
    """One sentence of advice, or a function of the context where the advice depends on it."""


def cost_words(finding: Finding) -> str:
    """``3 ms a call``; ``9 ms in all`` where the recording has no marked calls."""
    return f"{duration(finding.cost_s)} a call" if finding.calls else f"{duration(finding.total_s)} in all"


def calls(finding: Finding, verb: str = "") -> str:
    """``Each call was``, ``2 of 5 calls were``, followed by the participle ``verb``."""
    verb = f" {verb}" if verb else ""
    if finding.calls == finding.of_calls:
        return f"Each call was{verb}"
    return f"{finding.calls} of {count(finding.of_calls, 'call')} {'was' if finding.calls == 1 else 'were'}{verb}"


def number(facts: Mapping[str, Any], name: str) -> float | None:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def seconds(nanos: int | None) -> float | None:
    return None if nanos is None else nanos / 1e9


def seconds_between(finding: Finding, earlier: str, later: str) -> float | None:
    """Seconds between the first events of two roles; ``None`` where the evidence lacks one of them, or has them in the
    opposite order."""
    first = {item.role: item.at_s for item in reversed(finding.evidence)}
    if earlier not in first or later not in first or first[later] <= first[earlier]:
        return None
    return first[later] - first[earlier]
