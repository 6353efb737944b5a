"""Runs one load with several workers: starts them, divides the plan, and merges what they count.

Each worker runs the same plan with its own threads of all threads (``EngineShare`` in ``crates/load``), so the parts
add up to the load of one engine. A worker that fails leaves its part missing: no other worker makes more calls in its
place, since that would be another load. The result says how much is missing.

Design constraint: histograms are merged, and never percentiles. A worker's calls are counted once: from its outcome,
or, where it was lost, from the seconds that it reported.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from mcpace import _core
from mcpace.lab.errors import LabError, Unreachable, UsageProblem
from mcpace.lab.load.engine import END_LIMIT_S
from mcpace.lab.load.engine_outcome import Outcome
from mcpace.lab.load.merge import merge_parallel_outcomes
from mcpace.lab.load.outcome_to_case import load_second
from mcpace.lab.load.plan import LoadPlan
from mcpace.lab.load.workers.load_shares import planned_seconds, remaining_share
from mcpace.lab.load.workers.places import WorkerPlace
from mcpace.lab.load.workers.protocol import ALIVE_EVERY_S
from mcpace.lab.load.workers.shared_seconds import SharedSeconds
from mcpace.lab.load.workers.worker_link import PREPARE_LIMIT_S, WorkerLink, call_counts
from mcpace.lab.processes.interruption import allow_interrupt, defer_interrupt, is_hurried
from mcpace.report.model.load import LoadWorker

if TYPE_CHECKING:
    from mcpace.lab.load.run_load import Watcher

LOOK_S = 0.05
"""Seconds between two looks at the workers' messages."""
LEAD_S = 1.0
"""Seconds from the agreement on a start to the start. The engines look up the target and read certificates in it."""
NEWS_S = 3.0
"""Seconds of silence that are mentioned. A worker reports each second."""
STOP_LIMIT_S = 1.0
"""Seconds that calls in flight get after a stop; the engine gives them half a second."""


def run_workers(plan: LoadPlan, places: Sequence[WorkerPlace], watcher: Watcher) -> tuple[Outcome, list[LoadWorker]]:
    """Runs the plan with a worker at each place. Ctrl-C ends it early, with ``stopped`` in the outcome.

    Raises :class:`UsageProblem` for a plan that can't be run, and :class:`Unreachable` where no worker can begin.
    """
    check_plan(plan, len(places))
    with defer_interrupt(), ExitStack() as stack:
        load = _SharedLoad(plan, watcher, len(places))
        stack.callback(load.close)
        with allow_interrupt():
            for place in places:
                watcher.preparing(f"starting {place.name}")
                load.start_worker(place)
            load.prepare()
        is_interrupted = load.run()
        outcome = load.outcome(is_interrupted=is_interrupted)
        return outcome, load.facts(is_interrupted=is_interrupted)


def check_plan(plan: LoadPlan, workers: int) -> None:
    """Raises :class:`UsageProblem` where a worker could not run its part of the plan."""
    share = engine_share(plan, 0, workers) | {"start_ns": 2**62}
    try:
        engine = _core.Load(json.dumps({**json.loads(plan.to_json()), "share": share}))
    except ValueError as error:
        raise UsageProblem(str(error)) from error
    # It waits for a start that never comes.
    engine.stop()


def engine_share(plan: LoadPlan, number: int, workers: int) -> dict[str, int]:
    """The threads of the worker of a number, as the engine reads them."""
    return {"first_thread": number * plan.threads, "all_threads": workers * plan.threads}


class _SharedLoad:
    """The workers of one load."""

    def __init__(self, plan: LoadPlan, watcher: Watcher, count: int) -> None:
        self._plan = plan
        self._watcher = watcher
        self._count = count
        self._links: dict[int, WorkerLink] = {}
        """The workers whose channel was opened, by number."""
        self._failed: list[LoadWorker] = []
        self._seconds = SharedSeconds()
        self._start_ns = 0

    def start_worker(self, place: WorkerPlace) -> None:
        """Starts a worker, or the connection to it."""
        try:
            self._links[len(self._links) + len(self._failed)] = WorkerLink(place)
        except LabError as problem:
            self._failed.append(self._missing_worker(place.name, str(problem)))
            self._note_failure(place.name, str(problem))

    def prepare(self) -> None:
        """Brings all workers to the point before the start.

        Raises :class:`Unreachable` where none gets there.
        """
        started = time.monotonic()
        self._for_each(lambda link: link.await_hello(started))
        self._watcher.preparing("measuring the clocks of the workers")
        self._for_each(lambda link: link.measure_clock())
        plan = json.loads(self._plan.to_json())
        for number, link in self._links.items():
            if link.state == "starting":
                link.send_plan(plan, engine_share(self._plan, number, self._count))
        deadline = time.monotonic() + PREPARE_LIMIT_S
        self._for_each(lambda link: link.await_ready(deadline))
        if not self._with_state("starting"):
            reasons = "; ".join(f"{one.place}: {one.reason}" for one in self.facts(is_interrupted=False))
            raise Unreachable(f"no worker could begin the load: {reasons}")

    def run(self) -> bool:
        """Runs the load to its end. Returns whether Ctrl-C ended it."""
        links = self._with_state("starting")
        farthest_ns = max(link.offset.uncertainty_ns for link in links if link.offset is not None)
        lead_ns = round(LEAD_S * 1e9) + 8 * farthest_ns
        self._start_ns = time.perf_counter_ns() + lead_ns
        planned_s = planned_seconds(self._plan)
        for link in links:
            link.start_at(self._start_ns)
        end = time.monotonic() + lead_ns / 1e9 + planned_s + self._plan.drain_s + END_LIMIT_S
        try:
            with allow_interrupt():
                self._watcher.begin(planned_s)
                self._gather(end)
        except KeyboardInterrupt:
            for link in self._with_state("running"):
                link.send("stop")
            self._gather(time.monotonic() + STOP_LIMIT_S + END_LIMIT_S)
            return True
        return False

    def outcome(self, *, is_interrupted: bool) -> Outcome:
        """The counts of all workers together."""
        parts = [part for link in self._links.values() if (part := link.counts()) is not None]
        # A part that failed is reported by its worker's state.
        parts = [part.model_copy(update={"ended": "done", "failure": None}) for part in parts]
        merged = merge_parallel_outcomes(parts, self._seconds.all_seconds())
        update: dict[str, object] = {"started_ns": self._start_ns}
        if is_interrupted:
            update |= {"ended": "stopped"}
        elif not self._with_state("done"):
            reasons = "; ".join(f"{link.place.name}: {link.reason}" for link in self._links.values())
            update |= {"ended": "failed", "failure": f"all workers were lost: {reasons}"}
        if not merged.measured_s:
            # No worker reported its end: the measured part reaches to the last second that was reported.
            farthest_s = max((link.seconds for link in self._links.values()), default=0)
            update |= {"measured_s": max(min(farthest_s, planned_seconds(self._plan)) - self._plan.warm_up_s, 0.0)}
        return merged.model_copy(update=update)

    def facts(self, *, is_interrupted: bool) -> list[LoadWorker]:
        """The workers for the report."""
        started = [self._facts_of(link, is_interrupted=is_interrupted) for link in self._links.values()]
        return [*started, *self._failed]

    def close(self) -> None:
        """Ends all workers."""
        for link in self._with_state("running"):
            link.send("stop")
        for link in self._with_state("starting"):
            # Its pipe may be full of the plan, so that a further message or the pipe's end would wait.
            link.fail("refused", "the load was not begun")
        with ExitStack() as stack:
            for link in self._links.values():
                stack.callback(link.close)

    def _facts_of(self, link: WorkerLink, *, is_interrupted: bool) -> LoadWorker:
        facts = self._missing_worker(link.place.name, link.reason)
        if link.offset is not None:
            facts.time_offset_s = link.offset.time_ns / 1e9
            facts.uncertainty_s = link.offset.uncertainty_ns / 1e9
            if link.started_ns is not None:
                facts.start_skew_s = (link.started_ns - link.offset.clock_ns - self._start_ns) / 1e9
        part = link.counts()
        if part is not None:
            facts.intended = part.intended
            facts.calls, facts.errors = call_counts(part)
            facts.never_started = part.dropped
            facts.report_late_s = link.report_late_s
            facts.busy, facts.saturated = part.engine.busy, part.engine.saturated
        if link.state == "done":
            facts.state, facts.missing_share = "done", 0.0
        elif link.state == "lost":
            facts.state, facts.counted_s = "lost", float(link.seconds)
            # A load that was stopped ends with the last second of any worker.
            rest = remaining_share(self._plan, link.seconds)
            if is_interrupted:
                rest -= remaining_share(self._plan, max(other.seconds for other in self._links.values()))
            facts.missing_share *= max(rest, 0.0)
        return facts

    def _missing_worker(self, place: str, reason: str | None) -> LoadWorker:
        """The facts of a worker that made no part of the load."""
        return LoadWorker(
            place=place,
            state="refused",
            reason=reason,
            threads=self._plan.threads,
            share=1 / self._count,
            missing_share=1 / self._count,
        )

    def _gather(self, end: float) -> None:
        """Takes the workers' seconds until all have ended, or until a time of the monotonic clock."""
        next_alive = 0.0
        while running := self._with_state("running"):
            for link in running:
                for delta in link.take_deltas():
                    self._seconds.add(link.place.name, delta)
                if link.state in ("lost", "refused"):
                    self._note_failure(link.place.name, link.reason or "")
            self._publish()
            now = time.monotonic()
            if now > end or (is_hurried() and now > end - END_LIMIT_S):
                break
            if now >= next_alive:
                next_alive = now + ALIVE_EVERY_S
                for link in self._with_state("running"):
                    link.send("alive")
            time.sleep(LOOK_S)
        for link in self._with_state("running"):
            silent = f", and nothing was heard of it for {link.silent_s:.0f} s" if link.silent_s > NEWS_S else ""
            link.fail("lost", f"it did not end in time{silent}")
            self._note_failure(link.place.name, link.reason or "")
        self._publish()

    def _publish(self) -> None:
        running = [link.place.name for link in self._with_state("running")]
        for second in self._seconds.take_new(running):
            self._watcher.second(load_second(second))

    def _for_each(self, step: Callable[[WorkerLink], None]) -> None:
        """Takes a step with each worker that is still there."""
        for link in self._with_state("starting"):
            try:
                step(link)
            except LabError as problem:
                link.fail("refused", str(problem))
                self._note_failure(link.place.name, link.reason or "")

    def _note_failure(self, name: str, reason: str) -> None:
        self._watcher.note(f"{name}: {reason.rstrip('.')}. The rest of its part of the load is missing")

    def _with_state(self, state: str) -> list[WorkerLink]:
        return [link for link in self._links.values() if link.state == state]
