"""Compares a case with the first subject's, and words the result for the terminal and the page.

Design constraint: a run compares dozens of cases, and one in twenty intervals misses the true ratio by chance. The
verdict therefore mentions a change only where its whole interval is beyond a notable ratio and the difference is large
enough to matter.
"""

from __future__ import annotations

from enum import Enum

from mcpace.report.model.run import Case, Change
from mcpace.report.words.quantities import ratio_figure, times

NOTABLE_RATIO = 1.25
"""A change whose interval reaches below this ratio is in its row but not in the verdict."""

NOTABLE_DIFFERENCE_S = 0.002
"""A change of less than this difference is in its row but not in the verdict."""


class Standing(Enum):
    """Result of the comparison of a case with the first subject's."""

    UNKNOWN = "unknown"
    """Nothing to compare with, or too few trials."""
    SAME = "same"
    """The interval includes no change."""
    SLOWER = "slower"
    FASTER = "faster"
    MUCH_SLOWER = "much-slower"
    MUCH_FASTER = "much-faster"


def standing(change: Change | None) -> Standing:
    """Classifies a change."""
    if change is None or not 0 < change.ratio < float("inf"):
        return Standing.UNKNOWN
    if change.low <= 1 <= change.high:
        return Standing.SAME
    notable = abs(change.difference_s) >= NOTABLE_DIFFERENCE_S
    if change.ratio > 1:
        return Standing.MUCH_SLOWER if notable and change.low >= NOTABLE_RATIO else Standing.SLOWER
    return Standing.MUCH_FASTER if notable and change.high <= 1 / NOTABLE_RATIO else Standing.FASTER


def change_words(change: Change | None, *, short: bool = False) -> str:
    """``5.2× slower (4.9–5.6)``, in short form ``5.2× slower``; ``no difference seen``; empty where unknown."""
    now = standing(change)
    if change is None or now is Standing.UNKNOWN:
        return ""
    if now is Standing.SAME:
        return "no difference" if short else "no difference seen"
    if change.ratio > 1:
        told, low, high = f"{times(change.ratio)} slower", change.low, change.high
    else:
        told, low, high = f"{times(1 / change.ratio)} faster", _inverse(change.high), _inverse(change.low)
    return told if short else f"{told} ({ratio_figure(low)}–{ratio_figure(high)})"


def state_words(case: Case) -> str:
    """The reason why a case has no (complete) figures, in two or three words; empty where it has all."""
    if case.unsupported:
        return "unsupported"
    if case.error and not case.trials_s:
        return "failed"
    if case.failures:
        return f"{len(case.failures)} of {len(case.failures) + len(case.trials_s)} trials failed"
    return "" if case.trials_s else "not measured"


def _inverse(value: float) -> float:
    return 1 / value if value > 0 else float("inf")
