"""Finding ``generator-limited``: the load's own threads, not the target, determined the measurements.

The engine reports when it was the limit: due calls left late, or its threads had no time left. Sharing a machine with
the target is not a finding by itself; calls that waited for the generator are.
"""

from __future__ import annotations

from mcpace.report.model.contexts import GeneratorLimited
from mcpace.report.model.run import Case, Finding
from mcpace.report.words import findings

CODE = GeneratorLimited.code
REASONS = {"late-starts": "calls-left-late", "threads-busy": "threads-had-no-time"}


def limited_finding(case: Case) -> Finding | None:
    """Returns the finding where the engine was the limit of this load."""
    load = case.load
    if load is None or not load.engine.saturated:
        return None
    engine = load.engine
    seen = {"reason": engine.reason, "busy": round(engine.busy, 4), "late_p99_s": engine.late_p99_s}
    context = GeneratorLimited.read(seen | {"threads": engine.threads})
    calls = sum(one.count for one in (case.by_tool or {}).values())
    return Finding(
        code=CODE,
        severity="high",
        confidence="high",
        confidence_reason=REASONS.get(engine.reason or "", "threads-had-no-time"),
        # Time that a call waited for the generator. It is unknown where the generator had no time to read replies.
        cost_s=engine.late_p99_s if engine.reason == "late-starts" else 0.0,
        calls=calls,
        of_calls=calls,
        context=context.facts(),
        disproof="more-generator",
        advice=findings.advice_for(CODE, context.facts()),
    )
