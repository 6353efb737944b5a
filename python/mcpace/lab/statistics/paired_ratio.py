"""Ratio of two servers' throughput under equal load in paired rounds, with its confidence interval.

Rounds are pairs: both servers ran within seconds of each other, so disturbances of the machine affect both. The mean is
taken over logarithms, so that twice as fast and half as fast cancel out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

# Student's t at 97.5 %, by degrees of freedom from 1 (any book of tables).
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


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
    spread = _student_quantile(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - spread), math.exp(mean + spread), len(logs)


def _student_quantile(freedom: int) -> float:
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    # Past the table, this approximation is within 0.3 % (Abramowitz and Stegun 26.7.5, first term).
    normal = statistics.NormalDist().inv_cdf(0.975)
    return normal + (normal**3 + normal) / (4 * freedom)
