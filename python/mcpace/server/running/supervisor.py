"""The parent of worker processes: it starts them, replaces those that die, and ends them in order.

One loop on the main thread waits for signals, reports of workers, changed files and the time of the next start, and
handles one event at a time. The first worker is started alone, so that a fault of the server is reported once.

Deliberately absent: knowledge about serving. A worker is a program with the contract of :mod:`.child`.
"""

from __future__ import annotations

import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcpace.server.running.child import Child, describe_exit
from mcpace.server.running.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_SETUP
from mcpace.server.running.messages import say
from mcpace.server.running.restarts import GIVE_UP_AFTER, Restarts
from mcpace.server.running.signals import CHILD_ENDED, STOPPING, Arrivals, catch_signals

MARGIN_S = 3.0
"""Time beyond its own limit that a worker has to end before it is killed."""
FIRST_REPORT_S = 20.0
"""Time after which the start of the first worker is reported as slow."""


class FileChanges(Protocol):
    """Changed files that the loop can wait for."""

    def fileno(self) -> int:
        """A descriptor that is readable when files have changed."""
        ...

    def take(self) -> list[str]:
        """Returns and clears the changed files. Never blocks."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """The workers to run."""

    start: Callable[[int], Child]
    """Starts the worker with this index."""
    workers: int
    grace_s: float
    """Time limit for a worker to end."""
    on_ready: Callable[[dict[str, Any]], None]
    """Called with the first worker's facts when all workers serve."""
    changes: FileChanges | None = None
    """If given, a change restarts the workers, and a worker that can't start waits for the next change."""


@dataclass(slots=True)
class _Place:
    """The place of one worker, filled by one process after the other."""

    number: int
    child: Child | None = None
    serves_since: float | None = None
    start_at: float | None = None
    """When the next process is started; ``None`` if none is due."""
    asked_to_end: bool = False
    kill_at: float | None = None
    """The deadline of a process that was asked to end."""
    restarts: Restarts = field(default_factory=Restarts)


def supervise(plan: WorkerPlan) -> int:
    """Runs the workers until a signal arrives or all attempts failed. Returns the exit code."""
    with catch_signals((*STOPPING, *CHILD_ENDED)) as signals:
        supervisor = _Supervisor(plan, signals)
        try:
            return supervisor.run()
        finally:
            supervisor.kill_all()


class _Supervisor:
    def __init__(self, plan: WorkerPlan, signals: Arrivals) -> None:
        self._plan = plan
        self._signals = signals
        self._places = [_Place(number) for number in range(1, plan.workers + 1)]
        self._places[0].start_at = time.monotonic()
        self._facts: dict[str, Any] | None = None
        self._said_ready = False
        self._exit_code: int | None = None
        self._slow_at: float | None = time.monotonic() + FIRST_REPORT_S

    def run(self) -> int:
        while True:
            self._start_those_due()
            if self._exit_code is not None and not any(place.child for place in self._places):
                return self._exit_code
            self._wait()
            for number in self._signals.take():
                if number in STOPPING:
                    self._stopped_by(number)
            for place in self._places:
                self._read_report(place)
            for place in self._places:
                self._handle_exit(place)
            self._kill_those_due()
            if self._plan.changes is not None and (changed := self._plan.changes.take()):
                self._restart_all(changed)

    def kill_all(self) -> None:
        """Kills the remaining workers, however the loop ended."""
        for place in self._places:
            if place.child is not None:
                place.child.kill()
                place.child.close()
                place.child = None

    def _wait(self) -> None:
        times = [self._slow_at, *(at for place in self._places for at in (place.start_at, place.kill_at))]
        due = min((at for at in times if at is not None), default=None)
        limit = None if due is None else max(0.0, due - time.monotonic())
        # A worker's socket is ignored after its report. SIGCHLD announces its end.
        readers: list[Any] = [place.child for place in self._places if place.child and place.serves_since is None]
        readers.append(self._signals)
        if self._plan.changes is not None:
            readers.append(self._plan.changes)
        select.select(readers, [], [], limit)
        if self._slow_at is not None and time.monotonic() >= self._slow_at:
            self._slow_at = None
            say("the server is still being started: its module's import takes its time")

    def _start_those_due(self) -> None:
        now = time.monotonic()
        for place in self._places:
            if place.child is None and place.start_at is not None and place.start_at <= now:
                place.start_at = None
                place.child = self._plan.start(place.number)

    def _read_report(self, place: _Place) -> None:
        if place.child is None or place.serves_since is not None:
            return
        try:
            report = place.child.hear()
        except EOFError:
            return  # the exit status has the rest
        if report is None:
            return
        self._slow_at = None
        if not report.serves:
            # The worker has printed the reason. The first worker's failure applies to all, unless a changed file may
            # fix it.
            if not self._said_ready and self._plan.changes is None and self._exit_code is None:
                self._end_all(int(report.facts.get("exit_code", EXIT_SETUP)))
            return
        place.serves_since = time.monotonic()
        if self._facts is None:
            self._facts = report.facts
            for other in self._places[1:]:
                other.start_at = place.serves_since
        if not self._said_ready and all(one.serves_since is not None for one in self._places):
            self._said_ready = True
            self._plan.on_ready(self._facts)
        elif self._said_ready and self._exit_code is None:
            who = "the server" if self._plan.changes is not None else f"worker {place.number} (pid {place.child.pid})"
            say(f"{who} serves again")

    def _handle_exit(self, place: _Place) -> None:
        child = place.child
        if child is None or (status := child.ended()) is None:
            return
        self._read_report(place)  # it may have reported the reason before it ended
        now = time.monotonic()
        served_s = None if place.serves_since is None else now - place.serves_since
        asked_to_end = place.asked_to_end
        child.close()
        place.child, place.serves_since, place.asked_to_end, place.kill_at = None, None, False, None
        if self._exit_code is not None:
            return
        if asked_to_end:
            place.start_at = now
            return
        if self._plan.changes is not None:
            say(f"the server {describe_exit(status)}; it is started again when a file changes")
            return
        if not self._said_ready and served_s is None:
            say(f"worker {place.number} {describe_exit(status)} before it served")
            self._end_all(EXIT_SETUP)
            return
        delay = place.restarts.died(served_s=served_s)
        which = f"worker {place.number} (pid {child.pid}) {describe_exit(status)}"
        if delay is None:
            say(f"{which} before it served, {GIVE_UP_AFTER} times in a row: giving up")
            self._end_all(EXIT_SETUP)
            return
        say(f"{which}; its sessions are lost, another takes its place{f' in {delay:g} s' if delay else ''}")
        place.start_at = now + delay

    def _stopped_by(self, number: signal.Signals) -> None:
        if self._exit_code is None:
            again = "Ctrl-C again ends" if number == signal.SIGINT else "another signal ends"
            if self._plan.grace_s:
                say(f"stopping: calls in flight have up to {self._plan.grace_s:g} s; {again} at once")
            self._end_all(EXIT_INTERRUPTED if number == signal.SIGINT else EXIT_DONE)
            return
        self._exit_code = EXIT_INTERRUPTED
        for place in self._places:
            if place.child is not None:
                place.child.kill()

    def _end_all(self, exit_code: int) -> None:
        self._exit_code = exit_code
        for place in self._places:
            place.start_at = None
            self._ask_to_end(place)

    def _ask_to_end(self, place: _Place) -> None:
        if place.child is not None and not place.asked_to_end:
            place.child.stop()
            place.asked_to_end = True
            place.kill_at = time.monotonic() + self._plan.grace_s + MARGIN_S

    def _kill_those_due(self) -> None:
        for place in self._places:
            if place.child is not None and place.kill_at is not None and place.kill_at <= time.monotonic():
                place.child.kill()
                place.kill_at = None

    def _restart_all(self, changed: Sequence[str]) -> None:
        if self._exit_code is not None:
            return
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        say(f"{changed[0]}{more} changed: starting again")
        for place in self._places:
            if place.child is None:
                place.start_at = time.monotonic()
            else:
                self._ask_to_end(place)
