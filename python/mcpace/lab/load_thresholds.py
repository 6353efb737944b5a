"""Thresholds: limits that a load is held against, as ``p99<50ms``, ``errors<0.1%``, ``echo:p95<20ms``, ``rps>1000``.

Latencies are those from when a call was due. A threshold on something that was not measured is not met.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from mcpace.lab.errors import UnknownName, UsageProblem
from mcpace.lab.load_histogram import at, merged
from mcpace.report.run import Case
from mcpace.report.run_load import LoadOperation, LoadThreshold

COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
UNITS_S = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
FORMS = "write p99<50ms, mean<10ms, max<1s, errors<0.1%, errors<=3, rps>1000, or echo:p95<20ms for one tool"

Unit = Literal["s", "share", "count", "rps"]


@dataclass(frozen=True)
class Threshold:
    """One limit."""

    text: str
    """As the user wrote it."""
    operation: str | None
    """A tool's name (or ``initialize`` …); ``None``: all calls."""
    metric: str
    comparison: str
    limit: float
    unit: Unit

    def hold(self, case: Case) -> LoadThreshold:
        """Holds a measured load against it."""
        actual = self._actual(case)
        met = actual is not None and bool(COMPARISONS[self.comparison](actual, self.limit))
        return LoadThreshold(text=self.text, met=met, actual=actual, limit=self.limit, unit=self.unit)

    def _actual(self, case: Case) -> float | None:
        calls = dict(case.by_tool or {})
        others = case.load.others if case.load else {}
        named = {**others, **calls}
        wanted = calls if self.operation is None else {self.operation} & set(named)
        chosen = [named[name] for name in wanted]
        if not chosen:
            return None
        count = sum(one.count for one in chosen)
        failed = sum(one.count - one.ok for one in chosen)
        match self.metric:
            case "rps":
                return sum(one.throughput_rps for one in chosen)
            case "errors":
                return float(failed) if self.unit == "count" else failed / count if count else None
            case _:
                return _latency(self.metric, chosen)


def parse(text: str) -> Threshold:
    """Reads one.

    Raises :class:`UsageProblem` where it is none.
    """
    match = re.fullmatch(r"\s*(?:(.+):)?\s*([a-z][a-z0-9.]*)\s*(<=|>=|<|>)\s*(\d+(?:\.\d+)?)\s*([a-zµ%]*)\s*", text)
    if match is None:
        raise UsageProblem(f"--threshold {text!r} can't be read: {FORMS}")
    operation, metric, comparison, figure, unit = match.groups()
    known = metric in ("mean", "min", "max", "errors", "rps") or re.fullmatch(r"p\d{1,2}(\.\d+)?", metric)
    if not known:
        raise UsageProblem(f"--threshold {text!r}: there is no figure {metric!r}; {FORMS}")
    limit, kind = _limit(text, metric, float(figure), unit)
    return Threshold(text.strip(), operation and operation.strip(), metric, comparison, limit, kind)


def check(thresholds: Iterable[Threshold], operations: Iterable[str]) -> None:
    """Raises :class:`UnknownName` where one is on an operation that the load has not."""
    known = [*operations, "initialize"]
    for threshold in thresholds:
        if threshold.operation is not None and threshold.operation not in known:
            raise UnknownName("operation of a threshold", threshold.operation, known)


def _limit(text: str, metric: str, figure: float, unit: str) -> tuple[float, Unit]:
    if metric == "rps":
        if unit:
            raise UsageProblem(f"--threshold {text!r}: rps takes a bare number, as in rps>1000")
        return figure, "rps"
    if metric == "errors":
        if unit not in ("%", ""):
            raise UsageProblem(f"--threshold {text!r}: errors takes a share or a count: errors<0.1% or errors<=3")
        return (figure / 100, "share") if unit else (figure, "count")
    if unit not in UNITS_S:
        raise UsageProblem(f"--threshold {text!r}: a latency needs a unit, us, ms or s, as in {metric}<50ms")
    return figure * UNITS_S[unit], "s"


def _latency(metric: str, operations: list[LoadOperation]) -> float | None:
    measured = [one for one in operations if one.latency_s is not None]
    if not measured:
        return None
    told = [one.latency_s for one in measured if one.latency_s is not None]
    match metric:
        case "min":
            return min(one.min for one in told)
        case "max":
            return max(one.max for one in told)
        case "mean":
            return sum(one.mean * one.count for one in told) / sum(one.count for one in told)
        case _:
            return at(merged(one.latency_buckets for one in measured), float(metric[1:]) / 100)
