"""Ratio of paired measurements that are looked at several times, with intervals that are valid at every look.

An interval of 99 % that is computed after every round, until it excludes 1, excludes 1 far too often. The intervals
here are repeated confidence intervals (Jennison and Turnbull, *Group Sequential Methods with Applications to Clinical
Trials*, ch. 9): all looks together miss the true ratio with the stated probability, whatever rule ends the rounds. The
error is spread over the looks in proportion to the rounds (Kim and DeMets, *Biometrika* 74, 1987, with exponent 1).
The looks' shares add up to the whole error, so that Bonferroni's inequality gives the guarantee without an assumption
about the dependence between looks. O'Brien and Fleming's spending leaves the first looks so little error that
Student's t over four pairs never uses it.

Each look is Student's t over the logarithms of the pairs' ratios. Pairs are measured within seconds of each other, so
disturbances of the machine affect both values. Slices' medians are nearly normal; heavier tails widen the interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mcpace.lab.statistics.student import student_quantile

LOOKS = (4, 6, 8, 12)
"""Numbers of pairs after which the ratio is looked at. They are even, because the order in a pair alternates."""
FEWEST_PAIRS, MOST_PAIRS = LOOKS[0], LOOKS[-1]
NOTABLE = 0.05
"""Smallest effect that is reported. A smaller one counts as none, even if its interval excludes 1."""
MARGIN = 0.1
"""An interval that is wholly within this distance of 1 proves that there is no effect worth a report."""


@dataclass(frozen=True)
class SequentialRatio:
    """Ratio with its interval, and the answer that they give."""

    ratio: float
    low: float
    high: float
    verdict: Literal["slower", "faster", "same", "unclear"]


def sequential_ratio(
    ours: Sequence[float], theirs: Sequence[float], confidence: float, *, is_last: bool
) -> SequentialRatio:
    """Ratio of ours to theirs at a look after FEWEST_PAIRS pairs or more; all values are positive.

    ``is_last``: no further look follows, for a reason other than the values. Such a look uses the error that is left,
    and may come after any number of pairs.
    """
    logs = [math.log(our / their) for our, their in zip(ours, theirs, strict=True)]
    tail = _error_of_look(len(logs), 1 - confidence, is_last=is_last) / 2
    mean = statistics.fmean(logs)
    half = student_quantile(len(logs) - 1, tail) * statistics.stdev(logs) / math.sqrt(len(logs))
    ratio, low, high = math.exp(mean), math.exp(mean - half), math.exp(mean + half)
    return SequentialRatio(ratio, low, high, _verdict_of(ratio, low, high))


def _error_of_look(pairs: int, error: float, *, is_last: bool) -> float:
    """Error that a look may spend: the share of the pairs since the look before, or all that is left."""
    before = max((look for look in LOOKS if look < pairs), default=0)
    until = MOST_PAIRS if is_last else pairs
    return error * (until - before) / MOST_PAIRS


def _verdict_of(ratio: float, low: float, high: float) -> Literal["slower", "faster", "same", "unclear"]:
    if not low <= 1 <= high and abs(ratio - 1) >= NOTABLE:
        return "slower" if ratio > 1 else "faster"
    return "same" if low >= 1 - MARGIN and high <= 1 + MARGIN else "unclear"
