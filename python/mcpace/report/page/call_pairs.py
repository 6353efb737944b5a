"""Selects the calls whose waterfalls a page shows: the costliest first, each beside the fastest subject's call."""

from __future__ import annotations

from dataclasses import dataclass

from mcpace.report.groups import SEVERITIES, cases_at
from mcpace.report.model.run import Case, Run
from mcpace.report.words.standing import Standing, standing

MOST_EXCHANGES = 400
"""Maximum number of rows of all drawings together, so that a page stays small however many requests a client sends."""


@dataclass(frozen=True)
class Pair:
    """A call, and a faster call to compare it with, where there is one."""

    case: Case
    better: Case | None


def pairs(run: Run) -> list[Pair]:
    """The calls to draw, most informative first."""
    drawable = [case for case in run.cases if case.waterfall and case.waterfall.exchanges]
    most = max((_highest_cost(case) for case in drawable), default=0.0)
    ordered = sorted(drawable, key=lambda case: _rank(case, most))
    chosen: list[Pair] = []
    rows = 0
    for case in ordered:
        pair = Pair(case, _faster_case(run, case))
        rows += _row_count(case) + (_row_count(pair.better) if pair.better else 0)
        if chosen and rows > MOST_EXCHANGES:
            break
        chosen.append(pair)
    return chosen


def _rank(case: Case, most: float) -> tuple[int, bool, float]:
    """Sort key: costly calls first, and among those tool calls before other operations, which say less to a reader."""
    cost = _highest_cost(case)
    worth = 0 if cost > 0 and cost >= most / 2 else 1 if _is_remarkable(case) else 2
    return worth, case.operation != "call", -cost


def _highest_cost(case: Case) -> float:
    return max((finding.cost_s for finding in case.findings), default=0.0)


def _is_remarkable(case: Case) -> bool:
    grave = any(SEVERITIES.index(finding.severity) < 2 for finding in case.findings)
    return grave or standing(case.change) is Standing.MUCH_SLOWER


def _faster_case(run: Run, case: Case) -> Case | None:
    """The fastest other subject at the same target and operation, if it is faster."""
    others = [other for other in cases_at(run, case.target, case.operation) if other is not case and other.waterfall]
    best = min(others, key=_median, default=None)
    if best is None or not _is_remarkable(case) or _median(best) >= _median(case):
        return None
    return best


def _median(case: Case) -> float:
    return case.summary.median_s if case.summary else float("inf")


def _row_count(case: Case) -> int:
    return len(case.waterfall.exchanges) if case.waterfall else 0
