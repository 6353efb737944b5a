"""The shortest time in which servers can start, if only some start at the same time."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def shortest_schedule_s(starts_s: Sequence[float], at_once: int) -> float:
    """Time until the last server has started: each takes as long as alone, and begins when another one has ended.

    A bound that is too low where servers that start at the same time share a processor.
    """
    free_s = [0.0] * at_once
    for start_s in starts_s:
        heapq.heapreplace(free_s, free_s[0] + start_s)
    return max(free_s)
