"""How often one session repeats an operation, and which of the repetitions its trial reports.

A session's first list or call pays for what a server does lazily: imports, connections of its own, compiling. The
later ones cost what a user of a running session waits for. Both are reported, and never mixed. A trial is the typical
later one of its session: trials of different sessions are independent, as their intervals assume, while the repetitions
within a session share one process.
"""

from __future__ import annotations

from collections.abc import Sequence

DEFAULT_CALLS = 20
"""Repetitions of an operation in each session: the first and the later ones."""
LATER_S = 0.25
"""The later repetitions of a session end after this time, so that slow tools are called twice and no more."""


def wants_another(taken_s: Sequence[float], most: int) -> bool:
    """Whether a session repeats an operation whose repetitions so far took ``taken_s``."""
    return len(taken_s) < most and (len(taken_s) < 2 or sum(taken_s[1:]) < LATER_S)


def typical(taken_s: Sequence[float]) -> int:
    """Position of the repetition that a trial reports: the median later one, or the first where there is no other."""
    later = sorted(range(1, len(taken_s)), key=taken_s.__getitem__)
    return later[(len(later) - 1) // 2] if later else 0
