"""The time series of a load with several workers, merged second by second.

Design constraint: a second is published when every running worker has reported it, or late, when another worker is
several seconds ahead. Later reports are still counted in the series of the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mcpace.lab.load.engine_outcome import Histogram, Second, SecondLatency
from mcpace.lab.load.histogram import combine_histograms
from mcpace.lab.load.workers.messages import Delta

LONGEST_WAIT_S = 3
"""Seconds by which a worker may be ahead of an unpublished second."""


@dataclass
class _Sum:
    seconds: list[Second] = field(default_factory=list)
    latency: Histogram = field(default_factory=Histogram)

    def merged(self) -> Second:
        latency = self.latency
        return Second(
            at_s=self.seconds[0].at_s,
            warm_up=self.seconds[0].warm_up,
            users=sum(one.users for one in self.seconds),
            intended=sum(one.intended for one in self.seconds),
            ok=sum(one.ok for one in self.seconds),
            errors=sum(one.errors for one in self.seconds),
            latency=SecondLatency(p50_s=latency.p50_s, p90_s=latency.p90_s, p99_s=latency.p99_s, max_s=latency.max_s),
            engine_busy=sum(one.engine_busy for one in self.seconds) / len(self.seconds),
        )


class SharedSeconds:
    """All seconds of all workers."""

    def __init__(self) -> None:
        self._open: dict[int, _Sum] = {}
        """Seconds that a running worker may still report."""
        self._closed: dict[int, Second] = {}
        self._reported: dict[str, int] = {}
        """The number of seconds that each worker has reported."""
        self._published = 0

    def add(self, worker: str, delta: Delta) -> None:
        """Adds a worker's second."""
        at = round(delta.second.at_s)
        own = self._open.setdefault(at, _Sum())
        own.seconds.append(delta.second)
        own.latency = combine_histograms([own.latency, delta.latency])
        self._reported[worker] = at + 1

    def take_new(self, running: Iterable[str]) -> list[Second]:
        """The seconds that can be published since the last call. ``running``: workers that report further seconds."""
        farthest = max(self._reported.values(), default=0)
        complete = min((self._reported.get(worker, 0) for worker in running), default=farthest)
        candidates = sorted(self._open)
        for at in [at for at in candidates if at < complete]:
            self._closed[at] = self._open.pop(at).merged()
        end = max(complete, farthest - LONGEST_WAIT_S)
        numbers = [at for at in candidates if self._published <= at < end]
        found = [second for at in numbers if (second := self._second(at)) is not None]
        self._published = max(self._published, end)
        return found

    def all_seconds(self) -> list[Second]:
        """The whole series."""
        numbers = sorted({*self._open, *self._closed})
        return [second for at in numbers if (second := self._second(at)) is not None]

    def _second(self, at: int) -> Second | None:
        own = self._open.get(at)
        return own.merged() if own is not None else self._closed.get(at)
