"""Two servers under the same load in the same rounds: how much more the one does, and how sure that is.

Rounds are pairs: both servers had their turn within seconds of each other, so that what the machine did meanwhile is in
both. What is averaged are logarithms, so that twice as fast and half as fast cancel out.
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
    """Ratio of ours to theirs with its 95 % interval, and over how many rounds; ``None`` where no round has both.

    The two sequences go by rounds, the first with the first. A round in which either did nothing is left out.
    """
    logs = [math.log(one / other) for one, other in zip(ours, theirs, strict=False) if one > 0 and other > 0]
    if not logs:
        return None
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), None, None, 1
    spread = _student(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - spread), math.exp(mean + spread), len(logs)


def _student(freedom: int) -> float:
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    # Past the table it is within 0.3 % of this (Abramowitz and Stegun 26.7.5, first term).
    normal = statistics.NormalDist().inv_cdf(0.975)
    return normal + (normal**3 + normal) / (4 * freedom)
