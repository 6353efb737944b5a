"""When a worker that died is started again, and when that is given up. Pure: time is a parameter.

A worker that had run well is replaced at once. One that died young waits, each time twice as long, so that a fault
which comes back at once doesn't burn the machine. One that never got as far as serving, several times in a row, ends
it all: what is wrong then is nothing that another try would mend.
"""

from __future__ import annotations

from dataclasses import dataclass

WELL_AFTER_S = 10.0
"""A worker that served for this long was well."""
FIRST_DELAY_S = 0.25
LONGEST_DELAY_S = 30.0
GIVE_UP_AFTER = 5
"""Starts in a row that came to nothing."""


@dataclass(slots=True)
class Restarts:
    """The record of one worker's place."""

    young_deaths: int = 0
    failed_starts: int = 0

    def died(self, *, served_s: float | None) -> float | None:
        """How long to wait before the next start; ``None``: give up.

        ``served_s`` is for how long it had served, ``None`` where it never did.
        """
        self.failed_starts = self.failed_starts + 1 if served_s is None else 0
        if self.failed_starts >= GIVE_UP_AFTER:
            return None
        if served_s is not None and served_s >= WELL_AFTER_S:
            self.young_deaths = 0
            return 0.0
        self.young_deaths += 1
        # The first is replaced at once: most deaths are one of a kind.
        if served_s is not None and self.young_deaths == 1:
            return 0.0
        return float(min(FIRST_DELAY_S * 2 ** min(self.young_deaths - 1, 30), LONGEST_DELAY_S))
