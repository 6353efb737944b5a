"""The problems of a Run, each with its place: the common source of SARIF, annotations and the Markdown summary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Literal

from mcpace.report.groups import Group, Sighting, group_findings
from mcpace.report.model.comparison import Comparison
from mcpace.report.model.run import Run
from mcpace.report.verdict import sentences
from mcpace.report.words import comparison, drift, findings, tokens
from mcpace.report.words.load import threshold_words
from mcpace.report.words.quantities import clean

Level = Literal["error", "warning", "note"]
Outcome = Literal["passed", "failed", "inconclusive", "not judged"]

LEVELS: dict[str, Level] = {"high": "error", "medium": "warning", "low": "note"}
"""Level of a finding by its severity."""

TITLES: dict[str, str] = {
    "slower": "Slower than the tolerance allows",
    "broken": "Fails where the base works",
    "not-judged": "The gate could not judge",
    "inconclusive": "The gate is inconclusive",
    "drift-breaking": "A change of the listing breaks callers",
    "drift-widening": "The listing offers more",
    "drift-wording": "The listing has other words",
    "threshold": "A threshold of the load is not met",
    "tokens": "More tokens than the limit allows",
}
"""Titles of the codes that are not findings."""


@dataclass(frozen=True)
class Problem:
    """One problem, in sentences."""

    code: str
    """Code of a finding, or one of :data:`TITLES`."""
    level: Level
    title: str
    text: str
    target: str
    """Target, or target and operation, for a reader who has no file."""
    file: str | None = None
    """Path of the source file, where looking inside named one: relative to the working directory of the measurement."""
    line: int | None = None
    check: str = ""
    """The experiment that would disprove a finding."""
    is_new: bool = False
    """Whether a comparison shows the problem on the second side only."""


def problems(run: Run) -> list[Problem]:
    """The problems of a run: those of its gate and its thresholds first, then its findings, the gravest first."""
    found: list[Problem] = []
    if run.comparison is not None:
        found += _comparison_problems(run, run.comparison)
    found += _unmet_thresholds(run)
    found += [
        Problem("tokens", "error", TITLES["tokens"], tokens.limit_words(limit), clean(limit.target))
        for limit in run.limits
        if not limit.is_met
    ]
    new = _new_codes(run)
    for group in group_findings(run.cases):
        of_group = _finding_problems(group, is_new=new is not None and group.code in new)
        # A cause that the base has, too, is no error of the change.
        is_old = new is not None and group.code not in new
        found += [replace(one, level="warning") if is_old and one.level == "error" else one for one in of_group]
    return found


def gate_outcome(run: Run) -> Outcome:
    """Outcome of a gate. It agrees with the exit code of the command."""
    made = run.comparison
    if any(not limit.is_met for limit in run.limits) and not run.partial:
        return "failed"
    if made is None and run.limits and not run.partial:
        return "passed"
    if made is None or run.partial or not made.judged:
        return "not judged"
    if made.red:
        return "failed"
    return "inconclusive" if made.inconclusive else "passed"


def _comparison_problems(run: Run, made: Comparison) -> Iterator[Problem]:
    outcome = gate_outcome(run) if run.kind == "gate" else None
    if outcome in ("not judged", "inconclusive"):
        code = "inconclusive" if outcome == "inconclusive" else "not-judged"
        level: Level = "warning" if outcome == "inconclusive" else "error"
        text = " ".join(sentences(run)[:2])
        yield Problem(code, level, TITLES[code], text, clean(run.options.get("target") or run.kind), is_new=True)
    yield from _drift_problems(made)
    if not made.attempts or outcome not in (None, "failed") or made.reasons == ["drift"]:
        return
    level = "error" if outcome == "failed" else "warning"
    last = made.attempts[-1]
    for row in last.rows:
        if row.breach:
            place = comparison.place(row.subject, row.target, row.operation, row.tool)
            text = (
                f"The {comparison.METRICS[row.metric]} of {place} went from {comparison.value(row, row.base)} to "
                f"{comparison.value(row, row.now)}: {comparison.ratio_words(row)}."
            )
            yield Problem("slower", level, TITLES["slower"], text, place, is_new=True)
    for one in last.broken:
        place = comparison.place(one.subject, one.target, one.operation, one.tool)
        reason = clean(one.error or "it was not measured on the second side").rstrip(".")
        yield Problem("broken", level, TITLES["broken"], f"{place} fails: {reason}.", place, is_new=True)


def _drift_problems(made: Comparison) -> Iterator[Problem]:
    """Changes of the listing that a gate refuses, and all that break callers."""
    for found in made.drifts:
        refused = found.refused(made.drift_limit)
        for change in found.changes:
            if change in refused or change.level == "breaking":
                code = f"drift-{change.level}"
                level: Level = "error" if change in refused else "warning"
                target = clean(found.target)
                yield Problem(code, level, TITLES[code], f"{drift.change_words(change)}.", target, is_new=True)


def _unmet_thresholds(run: Run) -> Iterator[Problem]:
    for case in run.cases:
        for threshold in case.load.thresholds if case.load else []:
            if not threshold.met:
                text = f"The threshold {clean(threshold.text)} is not met: {threshold_words(threshold)}."
                yield Problem("threshold", "error", TITLES["threshold"], text, clean(case.target))


def _new_codes(run: Run) -> set[str] | None:
    """Codes of the causes that only the second side of a comparison has; ``None`` without a comparison."""
    if run.comparison is None or not run.comparison.attempts:
        return None
    return {one.code for one in run.comparison.attempts[-1].new_findings}


def _finding_problems(group: Group, *, is_new: bool) -> Iterator[Problem]:
    """One problem for each line of source code that the findings of one cause name, or one for all of them."""
    by_place: dict[tuple[str, int] | None, Sighting] = {}
    for sighting in group.sightings:
        by_place.setdefault(_source_place(sighting.finding.context), sighting)
    if len(by_place) > 1:
        by_place.pop(None, None)
    for place, sighting in by_place.items():
        finding = sighting.finding
        advice = clean(finding.advice or findings.advice_for(group.code, finding.context))
        yield Problem(
            code=clean(group.code, 60),
            level=LEVELS.get(finding.severity, "note"),
            title=findings.title_for(group.code),
            text=f"{findings.explanation_for(finding)} {advice}".strip(),
            target=f"{clean(sighting.case.target)} · {clean(sighting.case.operation)}",
            file=place[0] if place else None,
            line=place[1] if place else None,
            check=findings.disproof_for(finding.disproof),
            is_new=is_new,
        )


def _source_place(context: dict[str, Any]) -> tuple[str, int] | None:
    """File and line that the context names. Only a path inside the working directory is a file of the repository."""
    file, line = context.get("file"), context.get("line")
    if not isinstance(file, str) or not isinstance(line, int) or not 0 < line < 2**31:
        return None
    path = PurePosixPath(clean(file, 1000))
    inside = not path.is_absolute() and ".." not in path.parts and path.parts and path.parts[0] != "~"
    return (str(path), line) if inside else None
