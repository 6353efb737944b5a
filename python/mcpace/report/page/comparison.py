"""A comparison of two sides for the page: each figure's ratio with its interval, and the trials behind it."""

from __future__ import annotations

from mcpace.report.model.comparison import BaseCase, Compared, Comparison, SideFacts
from mcpace.report.model.run import Case, Run
from mcpace.report.page.model import ComparedShown, ComparisonShown
from mcpace.report.words.comparison import (
    METRICS,
    left_out,
    machine_words,
    place,
    ratio_words,
    sees_words,
    sides,
    turn_targets,
    value,
    verdict_words,
    warnings,
)
from mcpace.report.words.quantities import clean

MOST_OF_ONE = 200
"""Maximum number of drawn trials of one side of a case."""


def comparison_of(run: Run) -> ComparisonShown | None:
    """The comparison of a run, from its last attempt; ``None`` for other runs."""
    made = run.comparison
    if made is None:
        return None
    rows = made.attempts[-1].rows if made.attempts else []
    told = sides(run)
    # The set-up describes the machines. They are named here only where they differ.
    turns = turn_targets(run)
    first, second = turns or ("the first side", "the second side")
    first += "" if told else ", measured in turns with the second"
    if told:
        words = [f"{what}, {machine_words(facts)}" if _is_elsewhere(told) else what for _, what, facts in told]
        first, second = (*words, _second_name(run))[:2]
    return ComparisonShown(
        first=first,
        second=second,
        warnings=warnings(made),
        rows=[_row_view(row, run, made) for row in rows],
        notes=left_out(made),
    )


def _second_name(run: Run) -> str:
    """Name of the second side in comparisons of older releases, which have no facts of it."""
    name = clean(run.options.get("run") or "", 120)
    return name or f"{clean(run.started, 40)}, mcpace {clean(run.mcpace, 40)}"


def _is_elsewhere(told: list[tuple[str, str, SideFacts]]) -> bool:
    return len({machine_words(facts) for _, _, facts in told}) > 1


def _row_view(row: Compared, run: Run, made: Comparison) -> ComparedShown:
    first_s, second_s = _trials_of(row, run, made) if row.metric == "time" else ([], [])
    return ComparedShown(
        place=place(row.subject, row.target, row.operation, row.tool),
        metric=METRICS[row.metric],
        first=value(row, row.base),
        second=value(row, row.now),
        ratio=row.ratio,
        low=row.low,
        high=row.high,
        ratio_words=ratio_words(row),
        sees=sees_words(row),
        verdict=row.verdict,
        words=verdict_words(row),
        breach=row.breach,
        first_median_s=row.base if first_s else None,
        second_median_s=row.now if second_s else None,
        first_s=first_s[:MOST_OF_ONE],
        second_s=second_s[:MOST_OF_ONE],
    )


def _trials_of(row: Compared, run: Run, made: Comparison) -> tuple[list[float], list[float]]:
    """The trials of both sides; empty where the run lacks those of one side."""
    ours = [case for case in run.cases if _is_side_of(case, row, row.subject) and case.target == row.target]
    theirs = [case for case in made.base_cases if _is_side_of(case, row, row.base_subject)]
    # A server at another address is still the same case.
    theirs = [case for case in theirs if case.target == row.target] or theirs
    if len(ours) != 1 or len(theirs) != 1:
        return [], []
    return theirs[0].trials_s, ours[0].trials_s


def _is_side_of(case: Case | BaseCase, row: Compared, subject: str) -> bool:
    label = case.subject if isinstance(case, BaseCase) else case.subject.label()
    return (label, case.operation, case.tool) == (subject, row.operation, row.tool)
