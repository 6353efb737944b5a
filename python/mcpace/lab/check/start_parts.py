"""The parts of a server's start, from the events of a recording and the programs that were seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcpace.lab.check.import_times import ImportTimes
from mcpace.lab.check.runner_stages import Stages
from mcpace.lab.check.start_watch import ProgramStart
from mcpace.report.model.start import PartCode, StartPart

NANOS = 1e9


@dataclass
class ObservedStart:
    """One start as the instrumented client saw it: clocks in nanoseconds, 0 where an event is missing."""

    begin_ns: int
    pid: int | None = None
    spawned_ns: int = 0
    answered_ns: int = 0
    """The server's first message."""
    connected_ns: int = 0
    listed_ns: int = 0
    """End of the first list."""
    failed_ns: int = 0
    """End of the operation that failed."""
    processor_s: float | None = None
    """Processor time of the server's processes at the end of the first list."""
    noise: bool = False
    """Whether the server printed something else than messages on stdout."""
    program: ProgramStart | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the tools were listed."""
        return self.listed_ns > 0

    @property
    def total_s(self) -> float:
        """Seconds from the begin to the list of the tools."""
        return (self.listed_ns - self.begin_ns) / NANOS

    @property
    def failed_s(self) -> float:
        """Seconds from the begin to the failure; 0 where nothing failed."""
        return max(self.failed_ns - self.begin_ns, 0) / NANOS

    def parts(self, imports: ImportTimes | None, stages: Stages) -> list[StartPart]:
        """The parts, which add up to the total. ``imports`` and ``stages``, of another start of the same server, divide
        the times of the server's own program and of its package runner.
        """
        moments: list[tuple[PartCode, int]] = []
        if self.pid is not None:
            moments.append(("spawn", self.spawned_ns))
            if self.program is not None and self.program.at_ns is not None:
                moments.append(("runner", self.program.at_ns))
            moments.append(("set-up", self.answered_ns))
        moments += [("initialize", self.connected_ns), ("list", self.listed_ns)]
        parts: list[StartPart] = []
        before = self.begin_ns
        for code, at_ns in moments:
            # A program is seen some milliseconds late, which may be after its first message.
            at_ns = min(max(at_ns, before), self.listed_ns)
            seconds = (at_ns - before) / NANOS
            known: Stages = {}
            if code == "set-up" and imports is not None:
                known = {"interpreter": imports.interpreter_s, "imports": imports.imports_s}
            elif code == "runner":
                known = stages
            parts += _divide(code, seconds, known)
            before = at_ns
        return parts


def _divide(code: PartCode, seconds: float, known: Stages) -> Iterator[StartPart]:
    """Divides a part into the known ones, which are shortened if they take longer, and the rest."""
    scale = min(1.0, seconds / max(sum(known.values()), 1e-9))
    for part, part_s in known.items():
        yield StartPart(code=part, seconds=scale * part_s)
        seconds -= scale * part_s
    # A difference of floats below a nanosecond is nothing.
    yield StartPart(code=code, seconds=max(round(seconds, 9), 0.0))


def observed_starts(events: list[dict[str, Any]]) -> list[ObservedStart]:
    """Every start of a recording, in order. A start that failed is incomplete."""
    starts: list[ObservedStart] = []
    operation = ""
    for entry in events:
        at_ns, (kind, event) = entry["at"], next(iter(entry["event"].items()))
        if kind == "call-start":
            operation = event["operation"]
            if operation == "connect":
                starts.append(ObservedStart(at_ns))
        elif starts and not starts[-1].is_complete:
            _add_event(starts[-1], at_ns, kind, event, operation)
    return starts


def _add_event(start: ObservedStart, at_ns: int, kind: str, event: dict[str, Any], operation: str) -> None:
    if kind == "process-started" and start.pid is None:
        start.pid, start.spawned_ns = event["pid"], at_ns
    elif kind == "stdio-line" and event["from"] == "server":
        if not event.get("messages"):
            start.noise = True
        elif not start.answered_ns:
            start.answered_ns = at_ns
    elif kind == "processor-time" and event["pid"] == start.pid:
        start.processor_s = event["cpu"] / NANOS
    elif kind == "call-end" and event["outcome"] != "ok":
        start.failed_ns = at_ns
    elif kind == "call-end":
        if operation == "connect":
            start.connected_ns = at_ns
            start.answered_ns = start.answered_ns or at_ns
        elif operation == "list":
            start.listed_ns = at_ns
