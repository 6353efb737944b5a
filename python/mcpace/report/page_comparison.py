"""Two sides held against each other, for the page: each figure's ratio with its interval, and the trials behind it."""

from __future__ import annotations

from mcpace.report.page_model import ComparedShown, ComparisonShown
from mcpace.report.quantities import clean
from mcpace.report.run import Case, Run
from mcpace.report.run_comparison import BaseCase, Compared, Comparison
from mcpace.report.words_comparison import (
    METRICS,
    left_out,
    place,
    ratio_words,
    sees_words,
    value,
    verdict_words,
    warnings,
)

MOST_OF_ONE = 200
"""Of one side of a case."""


def compared(run: Run) -> ComparisonShown | None:
    """``None`` for other runs. Of several attempts the last one counts."""
    made = run.comparison
    if made is None:
        return None
    rows = made.attempts[-1].rows if made.attempts else []
    return ComparisonShown(
        first=_first(made, _name(run, "base")),
        second=_second(run, made),
        warnings=warnings(made),
        rows=[_row(row, run, made) for row in rows],
        notes=left_out(made),
    )


def _name(run: Run, side: str) -> str:
    """What a side is called, where it was a file."""
    return clean(run.options.get(side) or "", 120)


def _second(run: Run, made: Comparison) -> str:
    if made.base is None:
        return "the second side"
    # Of two saved runs the moment is that of comparing them.
    if run.kind == "compare":
        return _name(run, "run") or "the second run"
    return f"{clean(run.started, 40)}, mcpace {clean(run.mcpace, 40)}"


def _first(made: Comparison, name: str) -> str:
    base = made.base
    if base is None:
        return "the first side, measured in turns with the second"
    told = f"{clean(base.kind, 20)}, {clean(base.started, 40)}, mcpace {clean(base.mcpace, 40)}, {clean(base.cpu, 80)}"
    return f"{name}: {told}" if name else told


def _row(row: Compared, run: Run, made: Comparison) -> ComparedShown:
    first_s, second_s = _trials(row, run, made) if row.metric == "time" else ([], [])
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


def _trials(row: Compared, run: Run, made: Comparison) -> tuple[list[float], list[float]]:
    """Of both sides; none where the run doesn't hold one of them."""
    ours = [case for case in run.cases if _is(case, row, row.subject) and case.target == row.target]
    theirs = [case for case in made.base_cases if _is(case, row, row.base_subject)]
    # A server that was reached at another address is the same case there.
    theirs = [case for case in theirs if case.target == row.target] or theirs
    if len(ours) != 1 or len(theirs) != 1:
        return [], []
    return theirs[0].trials_s, ours[0].trials_s


def _is(case: Case | BaseCase, row: Compared, subject: str) -> bool:
    label = case.subject if isinstance(case, BaseCase) else case.subject.label()
    return (label, case.operation, case.tool) == (subject, row.operation, row.tool)
