"""Evidence about the inside of a server: the spans of its requests, its connections, and samples of its stacks.

A server that mcpace starts is instrumented by its environment. A server that runs already is only sampled.
Each source is optional. A source that gave nothing is an event of the recording, so that the report names it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mcpace import _core
from mcpace.lab.environments.releases import Say
from mcpace.lab.errors import LabError
from mcpace.lab.inside.instrumentation import (
    Instrumentation,
    SamplesProcesses,
    Variables,
    user_exporter_settings,
)
from mcpace.lab.inside.java_runtime import JavaInstrumentation
from mcpace.lab.inside.node_runtime import NodeInstrumentation
from mcpace.lab.inside.python_runtime import PythonInstrumentation
from mcpace.lab.inside.running_process import RunningProcess
from mcpace.lab.inside.runtimes import Runtime, command_runtimes
from mcpace.lab.targets import Target

LOOK_PERIOD_S = 0.004
"""Time between two looks at the connections of the server's processes."""
PROGRAM_PERIOD_S = 0.01
"""Time between two looks at the programs that the server's processes start."""
EXPORT_DELAY_S = 0.2
"""Longest time for which a program keeps its spans before it sends them."""
EXPORT_S = 0.2
"""Time for sending them."""
FAILURES = (LabError, _core.Problem, OSError)
"""Exceptions for which a server is not looked into. The measurement before is kept."""


class InsideEvidence:
    """Collects the evidence until it is closed. Use as a context manager."""

    def __init__(self, command: Sequence[str], say: Say, running: RunningProcess | None = None) -> None:
        """Prepares the instrumentation of the runtime that ``command`` starts; ``say`` reports installations.

        ``running`` is the server's process where it runs already, which leaves ``command`` without effect.
        """
        self._starts_program = running is None
        self._instrumentations: list[Instrumentation] = []
        self._watchers: list[_core.SocketWatcher | _core.ProcessWatcher] = []
        self._recordings: list[_core.Recording] = []
        self._own_exporter: list[str] = []
        # Each source is stopped although another one fails, here and in close().
        with ExitStack() as stack:
            # A program that a server left running may still write into the folder.
            folder = tempfile.TemporaryDirectory(prefix="mcpace-inside-", ignore_cleanup_errors=True)
            stack.enter_context(folder)
            self._receiver = _core.SpanReceiver()
            stack.callback(self._stop_receiver)
            if running is not None:
                self._add_instrumentation(running, stack)
                self._watch_outside(running.pid)
            else:
                for runtime in command_runtimes(command):
                    made = make_instrumentation(runtime, command, Path(folder.name), say)
                    self._add_instrumentation(made, stack)
            stack.callback(self._stop_watchers)
            self._sources = stack.pop_all()

    def __enter__(self) -> InsideEvidence:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def environment(self, own: Variables) -> list[tuple[str, str]]:
        """Variables for the server's process: ``own``, which the user gave, and those of the instrumentation."""
        if not self._starts_program:
            return list(own)
        self._own_exporter = user_exporter_settings(own)
        added = (
            []
            if self._own_exporter
            else [
                ("OTEL_EXPORTER_OTLP_ENDPOINT", self._receiver.endpoint),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
                ("OTEL_TRACES_EXPORTER", "otlp"),
                ("OTEL_METRICS_EXPORTER", "none"),
                ("OTEL_LOGS_EXPORTER", "none"),
                ("OTEL_BSP_SCHEDULE_DELAY", f"{EXPORT_DELAY_S * 1000:.0f}"),
            ]
        )
        for instrumentation in self._instrumentations:
            added += instrumentation.variables(own)
        return [*own, *added]

    def watch(self, pid: int) -> None:
        """Looks into the server's process and its descendants; of this process, the descendants only. Call it once.

        A process that ran already is looked into from the beginning.
        """
        if not self._starts_program:
            return
        self._watch_outside(pid)
        for instrumentation in self._samplers():
            instrumentation.watch(pid)

    @contextmanager
    def pause_samplers(self) -> Iterator[None]:
        """Takes no samples in the ``with`` block."""
        for instrumentation in self._samplers():
            instrumentation.pause()
        try:
            yield
        finally:
            for instrumentation in self._samplers():
                instrumentation.resume()

    def end_sampling(self) -> None:
        """Takes the last evidence that only a running program gives: samples, connections, started programs, and spans
        that it has not sent yet. Call it after the last request, before the program ends.
        """
        if self._starts_program:
            # No event tells that the last spans were sent.
            time.sleep(EXPORT_DELAY_S + EXPORT_S)
        self._stop_watchers()
        for instrumentation in self._samplers():
            instrumentation.end_sampling()

    def _watch_outside(self, pid: int) -> None:
        """Watches the connections of the processes, and the programs that they start."""
        exporters = [self._receiver.endpoint.removeprefix("http://")]
        self._watchers.append(_core.SocketWatcher(pid, period_s=LOOK_PERIOD_S, ignored=exporters))
        self._watchers.append(_core.ProcessWatcher(pid, period_s=PROGRAM_PERIOD_S))

    def _stop_watchers(self) -> None:
        while self._watchers:
            self._recordings.append(self._watchers.pop().stop())

    def _stop_receiver(self) -> None:
        self._recordings.append(self._receiver.stop())

    def _add_instrumentation(self, one: Instrumentation, stack: ExitStack) -> None:
        stack.callback(one.close)
        self._instrumentations.append(one)

    def _samplers(self) -> Iterator[SamplesProcesses]:
        for instrumentation in self._instrumentations:
            if isinstance(instrumentation, SamplesProcesses):
                yield instrumentation

    def close(self) -> None:
        """Stops the sources, and reads what the server's processes have left. Those that mcpace started have ended.

        Closing twice is harmless. Spans that a server sends later are lost.
        """
        self._sources.close()

    def add_to(self, recording: _core.Recording) -> None:
        """Closes the sources, and adds all events to the recording of the client."""
        self.close()
        for own in self._recordings:
            recording.add_recording(own)
        if self._own_exporter:
            recording.add_missing_source(
                "spans",
                f"{self._own_exporter[0]} is set, so the server's spans go where it says and mcpace adds none; "
                "mcpace explain --spans reads them from a file",
            )
        # If the command does not name its runtime, only runtimes that left evidence are reported.
        several = len(self._instrumentations) > 1
        seen = [one for one in self._instrumentations if several and one.has_evidence()]
        for instrumentation in seen or self._instrumentations:
            instrumentation.add_to(recording)


def make_instrumentation(runtime: Runtime, command: Sequence[str], folder: Path, say: Say) -> Instrumentation:
    """The instrumentation of one runtime."""
    match runtime:
        case Runtime.PYTHON:
            return PythonInstrumentation(folder, say)
        case Runtime.NODE:
            return NodeInstrumentation(folder, say)
        case Runtime.JAVA:
            return JavaInstrumentation(command, folder, say)


def open_evidence(target: Target, say: Say, pid: int | None = None) -> InsideEvidence:
    """Prepares the evidence about the server of ``target``, which is not started yet, or runs as process ``pid``.

    Raises :class:`LabError` where the process can't be looked into.
    """
    program = target.program
    command = target.command if program is None else program.command or (program.python,)
    running = RunningProcess(pid, target.url or "", say) if pid is not None else None
    return InsideEvidence(command, say, running)
