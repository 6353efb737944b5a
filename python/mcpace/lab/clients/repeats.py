"""Rules for repeating an operation within a session, and for selecting the repetition that a trial reports.

A session's first list or call includes the server's lazy work: imports, own connections, compiling. Later repetitions
show the cost in a running session. Both are reported separately. A trial reports the typical later repetition of its
session: trials of different sessions are independent, as the intervals assume, while repetitions within a session share
one process.
"""

from __future__ import annotations

from collections.abc import Sequence

DEFAULT_CALLS = 20
"""Default number of repetitions of an operation in each session, including the first."""
LATER_S = 0.25
"""Seconds after which the later repetitions of a session end, so that slow tools are called only twice."""


def wants_another(taken_s: Sequence[float], most: int) -> bool:
    """Whether a session repeats an operation whose repetitions so far took ``taken_s``."""
    return len(taken_s) < most and (len(taken_s) < 2 or sum(taken_s[1:]) < LATER_S)


def typical_index(taken_s: Sequence[float]) -> int:
    """Position of the repetition that a trial reports: the median later one, or the first if it is the only one."""
    later = sorted(range(1, len(taken_s)), key=taken_s.__getitem__)
    return later[(len(later) - 1) // 2] if later else 0
