"""Checks a measured load against its thresholds.

Latencies count from the time when a call was due. A threshold on something that was not measured is not met.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from mcpace.lab.load.histogram import merge_buckets, quantile_seconds
from mcpace.lab.load.thresholds import Threshold
from mcpace.report.model.load import LoadOperation, LoadThreshold
from mcpace.report.model.run import Case

COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def check_threshold(threshold: Threshold, case: Case) -> LoadThreshold:
    """Checks one threshold against a case."""
    actual = _measured_value(threshold, case)
    met = actual is not None and bool(COMPARISONS[threshold.comparison](actual, threshold.limit))
    return LoadThreshold(text=threshold.text, met=met, actual=actual, limit=threshold.limit, unit=threshold.unit)


def _measured_value(threshold: Threshold, case: Case) -> float | None:
    calls = dict(case.by_tool or {})
    named = {**(case.load.others if case.load else {}), **calls}
    wanted = calls if threshold.operation is None else {threshold.operation} & set(named)
    chosen = [named[name] for name in wanted]
    if not chosen:
        return None
    count = sum(one.count for one in chosen)
    failed = sum(one.count - one.ok for one in chosen)
    match threshold.metric:
        case "rps":
            return sum(one.throughput_rps for one in chosen)
        case "errors":
            return float(failed) if threshold.unit == "count" else failed / count if count else None
        case _:
            return _latency_value(threshold.metric, chosen)


def _latency_value(metric: str, operations: Sequence[LoadOperation]) -> float | None:
    told = [one.latency_s for one in operations if one.latency_s is not None]
    if not told:
        return None
    match metric:
        case "min":
            return min(one.min for one in told)
        case "max":
            return max(one.max for one in told)
        case "mean":
            return sum(one.mean * one.count for one in told) / sum(one.count for one in told)
        case _:
            return quantile_seconds(merge_buckets(one.latency_buckets for one in operations), float(metric[1:]) / 100)
