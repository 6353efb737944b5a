"""Offset between the clocks of a worker and the driver, from round trips (as in NTP, RFC 5905).

The worker reads its clock between the driver's send and receipt. The round trip with the shortest time bounds the
offset best: the worker's reading lies within it, so the error is at most half of its time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class RoundTrip:
    """One exchange, by the driver's clock, and the worker's readings in it."""

    sent_ns: int
    received_ns: int
    sent_time_ns: int
    """Time of day of the driver at the send."""
    clock_ns: int
    time_ns: int

    @property
    def length_ns(self) -> int:
        return self.received_ns - self.sent_ns


@dataclass(frozen=True)
class ClockOffset:
    """The worker's clocks minus the driver's."""

    clock_ns: int
    """Offset of the engines' clocks."""
    time_ns: int
    """Offset of the times of day."""
    uncertainty_ns: int
    """Largest error of both."""


def estimate_offset(trips: Iterable[RoundTrip]) -> ClockOffset:
    """Estimates the offset from at least one round trip."""
    best = min(trips, key=lambda trip: trip.length_ns)
    half_ns = -(-best.length_ns // 2)
    return ClockOffset(
        clock_ns=best.clock_ns - (best.sent_ns + half_ns),
        time_ns=best.time_ns - (best.sent_time_ns + half_ns),
        uncertainty_ns=half_ns,
    )
