"""Ratio of two servers' throughput under equal load in paired rounds, with its confidence interval.

Rounds are pairs: both servers ran within seconds of each other, so disturbances of the machine affect both. The mean is
taken over logarithms, so that twice as fast and half as fast cancel out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from mcpace.lab.statistics.student import student_quantile


def paired_ratio(
    ours: Sequence[float], theirs: Sequence[float]
) -> tuple[float, float | None, float | None, int] | None:
    """Ratio of ours to theirs, its 95 % interval, and the number of rounds; ``None`` where no round has both.

    Both sequences have one value for each round, in order. A round in which either value is 0 is left out.
    """
    logs = [math.log(our / their) for our, their in zip(ours, theirs, strict=False) if our > 0 and their > 0]
    if not logs:
        return None
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), None, None, 1
    spread = student_quantile(len(logs) - 1, 0.025) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - spread), math.exp(mean + spread), len(logs)
