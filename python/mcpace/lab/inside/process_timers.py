"""The timers that the code of one process waited for, as that process reports them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mcpace import _core

Frame = tuple[str, str, int]
"""Function, file and line of a call."""


@dataclass
class ProcessTimers:
    """Timers, and the stacks that set them by their numbers."""

    stacks: dict[int, Sequence[Frame]] = field(default_factory=dict)
    timers: list[tuple[int, int, int]] = field(default_factory=list)
    """When each was set and went off, in nanoseconds of the monotonic clock, and the number of its stack."""

    def add_to(self, recording: _core.Recording, pid: int) -> None:
        """Adds the timers whose stacks are known."""
        places = {number: place for place, number in enumerate(self.stacks)}
        timers = [(began, ended, places[stack]) for began, ended, stack in self.timers if stack in places]
        recording.add_timers(pid, [list(stack) for stack in self.stacks.values()], timers)
