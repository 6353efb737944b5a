"""The parent of worker processes: it starts them, replaces those that die, and ends them in order.

One loop on the main thread, which waits for signals, for what workers say, for changed files and for the time of the
next start, and does one thing at a time. The first worker is started alone: what is wrong with the server is then
said once.

Deliberately absent: any knowledge of what a worker does. It is a program with the contract of :mod:`.child`.
"""

from __future__ import annotations

import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcpace.server.running.child import Child, ending
from mcpace.server.running.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_SETUP
from mcpace.server.running.messages import say
from mcpace.server.running.restarts import GIVE_UP_AFTER, Restarts
from mcpace.server.running.signals import STOPPING, Arrivals, arriving

MARGIN_S = 3.0
"""What a worker gets beyond its own limit to end, before it is killed."""
FIRST_REPORT_S = 20.0
"""After how long a first worker's start is said to be slow."""


class Changes(Protocol):
    """Changed files, as something to wait for."""

    def fileno(self) -> int:
        """Readable when there are some."""
        ...

    def take(self) -> list[str]:
        """Those that changed. Never waits."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run, and by how many."""

    start: Callable[[int], Child]
    """Starts the worker of this number."""
    workers: int
    grace_s: float
    """How long a worker may take to end."""
    on_ready: Callable[[dict[str, Any]], None]
    """Called with the first worker's facts, once all serve."""
    changes: Changes | None = None
    """Where there are any, a change starts the workers anew, and a worker that can't start waits for the next."""


@dataclass(slots=True)
class _Place:
    """A worker's place, taken by one process after the other."""

    number: int
    child: Child | None = None
    serves_since: float | None = None
    start_at: float | None = None
    """When the next is to be started; ``None``: not at all, for now."""
    asked_to_end: bool = False
    kill_at: float | None = None
    """When one that was asked to end has had its time."""
    restarts: Restarts = field(default_factory=Restarts)


def supervise(plan: Plan) -> int:
    """Runs until a signal or until nothing can be done, and returns the exit code."""
    with arriving((*STOPPING, signal.SIGCHLD)) as signals:
        supervisor = _Supervisor(plan, signals)
        try:
            return supervisor.run()
        finally:
            supervisor.kill_all()


class _Supervisor:
    def __init__(self, plan: Plan, signals: Arrivals) -> None:
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
                self._hear(place)
            for place in self._places:
                self._bury(place)
            self._kill_those_due()
            if self._plan.changes is not None and (changed := self._plan.changes.take()):
                self._restart(changed)

    def kill_all(self) -> None:
        """At once; for those that are left however the loop ended."""
        for place in self._places:
            if place.child is not None:
                place.child.kill()
                place.child.close()
                place.child = None

    def _wait(self) -> None:
        times = [self._slow_at, *(at for place in self._places for at in (place.start_at, place.kill_at))]
        due = min((at for at in times if at is not None), default=None)
        limit = None if due is None else max(0.0, due - time.monotonic())
        # A worker that said all it had to say is listened to no more: its end comes as a signal.
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

    def _hear(self, place: _Place) -> None:
        if place.child is None or place.serves_since is not None:
            return
        try:
            report = place.child.hear()
        except EOFError:
            return  # its end says the rest
        if report is None:
            return
        self._slow_at = None
        if not report.serves:
            # Why, the worker has said. The first one's reason is everybody's, unless a changed file may mend it.
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

    def _bury(self, place: _Place) -> None:
        child = place.child
        if child is None or (status := child.ended()) is None:
            return
        self._hear(place)  # it may have said why before it ended
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
            say(f"the server {ending(status)}; it is started again when a file changes")
            return
        if not self._said_ready and served_s is None:
            say(f"worker {place.number} {ending(status)} before it served")
            self._end_all(EXIT_SETUP)
            return
        delay = place.restarts.died(served_s=served_s)
        which = f"worker {place.number} (pid {child.pid}) {ending(status)}"
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

    def _restart(self, changed: Sequence[str]) -> None:
        if self._exit_code is not None:
            return
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        say(f"{changed[0]}{more} changed: starting again")
        for place in self._places:
            if place.child is None:
                place.start_at = time.monotonic()
            else:
                self._ask_to_end(place)
