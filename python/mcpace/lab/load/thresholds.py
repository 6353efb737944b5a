"""Thresholds of a load, such as ``p99<50ms``, ``errors<0.1%``, ``echo:p95<20ms``, ``rps>1000``.

This module parses thresholds before the load; :mod:`mcpace.lab.load.gate` checks the measurements against them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

from mcpace.lab.errors import UnknownName, UsageProblem

UNITS_S = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
FORMS = "write p99<50ms, mean<10ms, max<1s, errors<0.1%, errors<=3, rps>1000, or echo:p95<20ms for one tool"

Comparison = Literal["<", "<=", ">", ">="]
Unit = Literal["s", "share", "count", "rps"]


@dataclass(frozen=True)
class Threshold:
    """One limit."""

    text: str
    """Text as the user wrote it."""
    operation: str | None
    """A tool's name (or ``initialize`` …); ``None``: all calls."""
    metric: str
    """``p99``, ``p99.9`` …, ``mean``, ``min``, ``max``, ``errors``, ``rps``."""
    comparison: Comparison
    limit: float
    """In ``unit``."""
    unit: Unit


def parse_threshold(text: str) -> Threshold:
    """Parses a threshold.

    Raises :class:`UsageProblem` for invalid text.
    """
    match = re.fullmatch(r"\s*(?:(.+):)?\s*([a-z][a-z0-9.]*)\s*(<=|>=|<|>)\s*(\d+(?:\.\d+)?)\s*([a-zµ%]*)\s*", text)
    if match is None:
        raise UsageProblem(f"--threshold {text!r} can't be read: {FORMS}")
    operation, metric, comparison, figure, unit = match.groups()
    known = metric in ("mean", "min", "max", "errors", "rps") or re.fullmatch(r"p\d{1,2}(\.\d+)?", metric)
    if not known:
        raise UsageProblem(f"--threshold {text!r}: there is no figure {metric!r}; {FORMS}")
    limit, kind = _parse_limit(text, metric, float(figure), unit)
    return Threshold(text.strip(), operation and operation.strip(), metric, cast(Comparison, comparison), limit, kind)


def check_thresholds(thresholds: Iterable[Threshold], operations: Iterable[str]) -> None:
    """Raises :class:`UnknownName` for a threshold on an operation that the load doesn't have."""
    known = [*operations, "initialize"]
    for threshold in thresholds:
        if threshold.operation is not None and threshold.operation not in known:
            raise UnknownName("operation of a threshold", threshold.operation, known)


def _parse_limit(text: str, metric: str, figure: float, unit: str) -> tuple[float, Unit]:
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
