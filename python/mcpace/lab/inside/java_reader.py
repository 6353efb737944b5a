"""Reads recordings of JDK Flight Recorder with the program ``java/ReadRecording.java``, on the clock of recordings."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from mcpace import _core
from mcpace.lab.environments.installers.steps import in_one_line
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.inside.instrumentation import missing_on_failure
from mcpace.lab.inside.java_recording import Clock, JavaRecording, read_recording
from mcpace.lab.inside.java_tools import READER
from mcpace.lab.processes.child_processes import run_child

OPTIONS = "JAVA_TOOL_OPTIONS"
OPTION_VARIABLES = (OPTIONS, "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Variables from which virtual machines read options. Programs of mcpace's own run without them."""
NO_OPTIONS = dict.fromkeys(OPTION_VARIABLES, "")
READ_LIMIT_S = 60.0
MOST_READ_BYTES = 64 << 20
"""Bytes of text that are made of one recording."""
READER_OPTIONS = ("-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
CLOCK_READINGS = 5


class RecordingReader:
    """Reads the recordings of virtual machines in one run."""

    def __init__(self, java: str, classes: Path, miss: Callable[[str, str], object]) -> None:
        """``java`` runs the reader's ``classes``. ``miss`` is called with the sources that are missing, and why."""
        self._command = [java, *READER_OPTIONS, "-cp", str(classes), READER]
        self._miss = miss

    def read(self, path: Path, clock: Clock, *, has_agent: bool) -> JavaRecording | None:
        """Reads a file; ``None`` where it can't be read. ``has_agent`` as in :func:`read_recording`."""
        with missing_on_failure("stacks", "a recording of a Java program", self._miss):
            done = run_child([*self._command, str(path), str(MOST_READ_BYTES)], READ_LIMIT_S, env=NO_OPTIONS)
            if done.code != 0 and not done.stdout:
                why = f"took longer than {READ_LIMIT_S:g} s" if done.timed_out else in_one_line(done.stderr, lines=1)
                raise EnvironmentProblem(f"a recording of a Java program can't be read: {why}")
            one = read_recording(done.stdout, clock, has_agent=has_agent)
            if one.is_cut:
                self._miss("stacks", f"the recording of process {one.pid} is long: its end was left out")
            return one
        return None


def add_recording(one: JavaRecording, recording: _core.Recording) -> None:
    """Adds the samples and the pauses of one virtual machine."""
    with missing_on_failure("stacks", f"the recording of process {one.pid}", recording.add_missing_source):
        recording.add_stacks(one.pid, one.stacks, one.samples)
        recording.add_pauses(one.pid, one.pauses)


def has_opentelemetry_agent(options: str) -> bool:
    """Whether options of a virtual machine load an agent of OpenTelemetry, beside which a second one would do harm."""
    return any("otel" in word or "opentelemetry" in word for word in options.lower().split("-javaagent:")[1:])


def clock_offset() -> tuple[int, int]:
    """A time of the wall clock, and how far it is ahead of the recording's clock: the closest of some readings."""
    readings = []
    for _ in range(CLOCK_READINGS):
        before, wall, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
        readings.append((after - before, wall, wall - (before + after) // 2))
    return min(readings)[1:]


def clock_between(start: tuple[int, int], end: tuple[int, int]) -> Clock:
    """Maps times of the wall clock to the recording's clock, by the offsets at both ends."""
    (began, first), (ended, last) = start, end
    length = max(ended - began, 1)
    return lambda wall: wall - first - (last - first) * min(max(wall - began, 0), length) // length
