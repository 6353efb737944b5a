"""The rule by which a dead worker is restarted or given up. Pure: time is a parameter.

A worker that had served long enough is replaced at once. The replacement of one that died early waits, each time twice
as long, so that a recurring fault does not keep the machine busy. Several starts in a row that never served end the
server, because another attempt would not help.
"""

from __future__ import annotations

from dataclasses import dataclass

WELL_AFTER_S = 10.0
"""A worker that served for this long counts as healthy."""
FIRST_DELAY_S = 0.25
LONGEST_DELAY_S = 30.0
GIVE_UP_AFTER = 5
"""Number of failed starts in a row after which the server gives up."""


@dataclass(slots=True)
class Restarts:
    """The failures of one worker's place."""

    young_deaths: int = 0
    failed_starts: int = 0

    def died(self, *, served_s: float | None) -> float | None:
        """The delay before the next start; ``None`` to give up. ``served_s`` is the time that the worker had served,
        ``None`` if it never did.
        """
        self.failed_starts = self.failed_starts + 1 if served_s is None else 0
        if self.failed_starts >= GIVE_UP_AFTER:
            return None
        if served_s is not None and served_s >= WELL_AFTER_S:
            self.young_deaths = 0
            return 0.0
        self.young_deaths += 1
        # The first failure is replaced at once: most failures do not recur.
        if served_s is not None and self.young_deaths == 1:
            return 0.0
        return float(min(FIRST_DELAY_S * 2 ** min(self.young_deaths - 1, 30), LONGEST_DELAY_S))
