"""The driver's side of the conversation with one worker: its messages, and what it counted so far."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from mcpace import __version__
from mcpace.lab.errors import LabError
from mcpace.lab.load.engine_outcome import Engine, OperationOutcome, Outcome
from mcpace.lab.load.merge import merge_operations
from mcpace.lab.load.workers.channel import CLOSE_LIMIT_S, MOST_WAITING_LINES
from mcpace.lab.load.workers.clock_offset import ClockOffset, RoundTrip, estimate_offset
from mcpace.lab.load.workers.messages import (
    MESSAGE,
    ClockReading,
    Delta,
    DeltaMessage,
    Hello,
    Message,
    OutcomeMessage,
    Ready,
    Refused,
)
from mcpace.lab.load.workers.places import WorkerPlace
from mcpace.lab.load.workers.protocol import PROTOCOL, SILENCE_LIMIT_S, encode_message
from mcpace.lab.processes.adapter_process import SHOWN

CLOCK_LIMIT_S = 5.0
MOST_TRIPS, FEWEST_TRIPS, TRIPS_S = 32, 4, 1.0
"""Round trips that measure a clock: as many as fit into a second, between two limits."""
PREPARE_LIMIT_S = 60.0
MOST_STRANGE_LINES = 100
"""Lines of a shell's start-up files before the worker's first message."""
LONGEST_REASON = 400
"""Characters of a worker's own words that are shown."""

SESSION = ("initialize", "initialized", "delete")
"""Kinds of requests that are no calls."""
ANSWERS: dict[type[object], str] = {Hello: "start", ClockReading: "clock", Ready: "prepare"}
"""Names of the requests that the messages answer."""

Expected = TypeVar("Expected", bound=Message)


class WorkerFailure(LabError):
    """A worker can't take part, or can't go on. The message doesn't name the worker."""


class WorkerLink:
    """One worker."""

    def __init__(self, place: WorkerPlace) -> None:
        self._channel = place.open_channel()
        self.place = place
        self.state: Literal["starting", "running", "done", "refused", "lost"] = "starting"
        self.reason: str | None = None
        self.offset: ClockOffset | None = None
        self.started_ns: int | None = None
        self.seconds = 0
        """Seconds of the load whose counts have arrived."""
        self.report_late_s = 0.0
        """Longest time from the end of a second to the arrival of its counts."""
        self.outcome: Outcome | None = None
        self._agreed_ns = 0
        self._operations: list[OperationOutcome] = []
        self._last: Delta | None = None
        self._heard = time.monotonic()

    def await_hello(self, started: float) -> None:
        """Waits for the first message and compares versions. ``started`` is the time of the workers' start.

        Raises :class:`WorkerFailure`.
        """
        deadline = started + self._channel.start_limit_s
        hello = self._await(Hello, max(deadline - time.monotonic(), 0.0), is_first=True)
        if hello.version != __version__:
            raise WorkerFailure(f"it has mcpace {hello.version}, and this machine {__version__}: install the same")
        if hello.protocol != PROTOCOL:
            raise WorkerFailure(f"it speaks protocol {hello.protocol} of workers, and this machine {PROTOCOL}")

    def measure_clock(self) -> None:
        """Measures the offset of the worker's clocks.

        Raises :class:`WorkerFailure`.
        """
        trips: list[RoundTrip] = []
        end = time.monotonic() + TRIPS_S
        while len(trips) < FEWEST_TRIPS or (len(trips) < MOST_TRIPS and time.monotonic() < end):
            sent_time_ns, sent_ns = time.time_ns(), time.perf_counter_ns()
            self.send("clock", number=len(trips))
            reading = self._await(ClockReading, CLOCK_LIMIT_S)
            received_ns = time.perf_counter_ns()
            if reading.number != len(trips):
                raise WorkerFailure("it answered another 'clock' than the last")
            trips.append(RoundTrip(sent_ns, received_ns, sent_time_ns, reading.clock_ns, reading.time_ns))
        self.offset = estimate_offset(trips)

    def send_plan(self, plan: dict[str, Any], share: dict[str, int]) -> None:
        """Sends the plan, without waiting for the worker to read it."""
        threading.Thread(
            target=self.send, args=("prepare",), kwargs={"plan": plan, "share": share}, daemon=True
        ).start()

    def await_ready(self, deadline: float) -> None:
        """Waits until the worker has its plan and has reached the target.

        Raises :class:`WorkerFailure`.
        """
        self._await(Ready, max(deadline - time.monotonic(), 0.0))

    def start_at(self, driver_ns: int) -> None:
        """Lets the load begin at an instant of the driver's clock."""
        assert self.offset is not None, "the clock was measured"
        self.send("start", at_ns=driver_ns + self.offset.clock_ns)
        self._agreed_ns = driver_ns
        self.state = "running"
        self._heard = time.monotonic()

    def send(self, kind: str, **members: Any) -> None:
        """Sends a message. A worker that is gone is noticed by its silence."""
        with contextlib.suppress(OSError, ValueError):
            self._channel.send(encode_message(kind, **members))

    def take_deltas(self) -> list[Delta]:
        """Reads the messages that have arrived. Sets the state where the worker has ended."""
        found: list[Delta] = []
        for _ in range(MOST_WAITING_LINES):
            if self.state != "running":
                break
            try:
                line = self._channel.lines.get_nowait()
            except queue.Empty:
                if self.silent_s > SILENCE_LIMIT_S:
                    self.fail("lost", f"nothing was heard of it for {SILENCE_LIMIT_S:.0f} s")
                break
            self._heard = time.monotonic()
            try:
                match self._parse(line):
                    case DeltaMessage(delta=delta):
                        self._count(delta)
                        found.append(delta)
                    case OutcomeMessage(outcome=outcome):
                        self._finish(outcome)
                    case Refused(reason=reason):
                        self.fail("refused", reason)
                    case other:
                        self.fail("lost", f"it sent {other.kind!r} during the load")
            except WorkerFailure as problem:
                self.fail("lost", str(problem))
        return found

    @property
    def silent_s(self) -> float:
        """Seconds since its last message."""
        return time.monotonic() - self._heard

    def fail(self, state: Literal["refused", "lost"], reason: str) -> None:
        """Gives the worker up, and ends it."""
        self.state, self.reason = state, shorten_reason(reason)
        self._channel.kill()

    def counts(self) -> Outcome | None:
        """The outcome, or, where the worker was lost, the sum of its seconds; ``None`` without any."""
        last = self._last
        if self.outcome is not None or last is None:
            return self.outcome
        return Outcome(
            ended="done",
            started_ns=last.started_ns,
            elapsed_s=self.seconds,
            measured_s=0.0,
            intended=last.intended,
            begun=last.begun,
            dropped=last.intended - last.begun,
            late=last.late,
            unfinished=max(last.begun - sum(one.count for one in self._operations if one.kind not in SESSION), 0),
            operations=self._operations,
            connections=last.connections,
            seconds=[],
            engine=Engine(threads=0, cpu_s=0.0, busy=0.0, late_p99_s=0.0, saturated=False),
        )

    def close(self, limit_s: float = CLOSE_LIMIT_S) -> None:
        """Asks the worker to end, and ends it after the limit."""
        self._channel.close(limit_s)

    def _count(self, delta: Delta) -> None:
        self._operations = merge_operations([*self._operations, *delta.operations])
        self._last = delta
        self.started_ns = delta.started_ns
        end_s = round(delta.second.at_s) + 1
        self.seconds = max(self.seconds, end_s)
        self.report_late_s = max(self.report_late_s, (time.perf_counter_ns() - self._agreed_ns) / 1e9 - end_s)

    def _finish(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.started_ns = outcome.started_ns
        self.state = "done"
        if outcome.ended == "failed":
            self.state, self.reason = "lost", shorten_reason(outcome.failure or "its engine failed")
        self._channel.end_input()

    def _await(self, expected: type[Expected], limit_s: float, *, is_first: bool = False) -> Expected:
        deadline = time.monotonic() + limit_s
        waiting_for = ANSWERS[expected]
        for _ in range(MOST_STRANGE_LINES):
            try:
                line = self._channel.next_line(max(deadline - time.monotonic(), 0.001))
            except TimeoutError:
                raise WorkerFailure(f"it did not answer {waiting_for!r} within {limit_s:.0f} s") from None
            if is_first and line is not None and not line.startswith(b'{"kind"'):
                continue
            message = self._parse(line)
            if isinstance(message, Refused):
                raise WorkerFailure(message.reason)
            if isinstance(message, expected):
                return message
            break
        raise WorkerFailure(f"it answered {waiting_for!r} with something else")

    def _parse(self, line: bytes | None) -> Message:
        if line is None:
            raise WorkerFailure(self._channel.end_reason())
        try:
            return MESSAGE.validate_json(line)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in problem["loc"])
            shown = line[:SHOWN].decode("utf-8", "replace").strip()
            raise WorkerFailure(
                f"it sent something that is no message ({where + ': ' if where else ''}{problem['msg']}): {shown!r}"
            ) from None


def shorten_reason(text: str) -> str:
    """The first characters of a worker's own words, in one line without control characters."""
    printable = (character if character.isprintable() else " " for character in text[: 4 * LONGEST_REASON])
    return " ".join("".join(printable).split())[:LONGEST_REASON]


def call_counts(outcome: Outcome) -> tuple[int, int]:
    """Calls that ended, and those of them that failed."""
    calls = [one for one in outcome.operations if one.kind not in SESSION]
    return sum(one.count for one in calls), sum(one.count - one.ok for one in calls)
