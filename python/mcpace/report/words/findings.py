"""The sentences for findings: the only place where a finding's code becomes text for people.

Design constraint: a sentence is built from the finding's own figures and context. A missing member of the context (an
older or newer Run) only makes the sentence shorter. This module never decides whether something is a finding. Each
family of findings has a module of its own beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpace.report.model.context import Context, best_match
from mcpace.report.model.contexts import CONTEXTS
from mcpace.report.model.run import Alternative, Finding
from mcpace.report.words import concurrency, hidden_work, inside, loops, measurement, resources, transport, waiting
from mcpace.report.words.context import Words
from mcpace.report.words.disproofs import DECISIONS, DISPROOFS
from mcpace.report.words.quantities import clean, count, duration, size

__all__ = ["CODES", "DISPROOFS", "Words"]

_WORDS: dict[type[Context], Words[Any]] = {
    words.context: words
    for words in (
        *hidden_work.WORDS,
        *waiting.WORDS,
        *transport.WORDS,
        *loops.WORDS,
        *concurrency.WORDS,
        *resources.WORDS,
        *inside.WORDS,
        *measurement.WORDS,
    )
}

_BY_CODE: dict[str, Words[Any]] = {
    code: _WORDS[variants[0]] for code, variants in CONTEXTS.items() if variants[0] in _WORDS
}
"""The words of each code. All contexts of one code have the title and clause of its first context."""

CODES: tuple[str, ...] = tuple(_BY_CODE)
"""Every code that has words."""


def title_for(code: str) -> str:
    """Heading of a finding; the code itself where this release has no words for it."""
    return _BY_CODE[code].title if code in _BY_CODE else clean(code, 60)


def clause_for(code: str) -> str:
    """The cause as a main clause without capital and full stop."""
    return _BY_CODE[code].clause if code in _BY_CODE else f"{clean(code, 60)} was seen"


def explanation_for(finding: Finding) -> str:
    """The observation and its cost, in one or two sentences."""
    if finding.code not in _BY_CODE:
        return "This release of mcpace has no words for this cause; a newer one has."
    context = best_match(CONTEXTS[finding.code], finding.context)
    return _WORDS[type(context)].explain(finding, context)


def advice_for(code: str, facts: Mapping[str, Any]) -> str:
    """One sentence of advice; empty for a code that this release doesn't know."""
    if code not in _BY_CODE:
        return ""
    context = best_match(CONTEXTS[code], facts)
    advise = _WORDS[type(context)].advise
    return advise if isinstance(advise, str) else advise(context)


def disproof_for(code: str) -> str:
    """The experiment that would disprove a finding; empty for a code that this release doesn't know."""
    return DISPROOFS.get(code, "")


def alternative_for(alternative: Alternative) -> str:
    """Another cause that would look the same, with the result that would support it. For a pair that this release
    doesn't know, only the experiment is named."""
    clause = clause_for(alternative.code)
    seen = DECISIONS.get((alternative.code, alternative.decided_by))
    if seen:
        return f"{clause}, if {seen}"
    experiment = disproof_for(alternative.decided_by).partition(":")[0]
    return f"{clause} ({experiment})" if experiment else clause


def cost_of(finding: Finding) -> str:
    """``2.0 s + 1 extra request + 640 B a call``: the costs that aren't 0, and the number of affected calls unless all
    are. The cost of a start-up is ``a start``. A cause outside every call has a total: ``12 extra requests in all``."""
    if not finding.calls:
        costs = _costs(finding.total_s, finding.total_requests, finding.total_bytes)
        return " + ".join(costs) + " in all" if costs else "no time of its own"
    costs = _costs(finding.cost_s, finding.cost_requests, finding.cost_bytes)
    if not costs:
        return "no time of its own"
    seldom = f", in {finding.calls:,} of {finding.of_calls:,}" if finding.calls < finding.of_calls else ""
    return f"{' + '.join(costs)} {each_of(finding)}{seldom}"


def each_of(finding: Finding) -> str:
    """The unit of a cost: ``a call``, ``a start``, ``a session's first call``."""
    if finding.code == "slow-start":
        return "a start"
    return "a session's first call" if finding.first_only else "a call"


def _costs(seconds: float, requests: float, size_bytes: float) -> list[str]:
    costs = [duration(seconds)] if seconds > 0 else []
    if requests >= 0.05:
        costs.append(count(requests, "extra request"))
    if size_bytes >= 1:
        costs.append(size(size_bytes))
    return costs
