"""Evidence about the inside of a server that mcpace starts: the spans of its requests, and samples of its stacks.

Each source is optional. A source that gave nothing is an event of the recording, so that the report names it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from mcpace import _core
from mcpace.lab.environments.releases import Say
from mcpace.lab.inside.instrumentation import Instrumentation, Variables, user_exporter_settings
from mcpace.lab.inside.java_runtime import JavaInstrumentation
from mcpace.lab.inside.node_runtime import NodeInstrumentation
from mcpace.lab.inside.python_runtime import PythonInstrumentation
from mcpace.lab.inside.runtimes import Runtime, command_runtimes


class InsideEvidence:
    """Collects the evidence until it is closed. Use as a context manager."""

    def __init__(self, command: Sequence[str], say: Say) -> None:
        """Prepares the instrumentation of the runtime that ``command`` starts; ``say`` reports installations."""
        self._folder = tempfile.TemporaryDirectory(prefix="mcpace-inside-")
        self._receiver = _core.SpanReceiver()
        self._instrumentations: list[Instrumentation] = [
            make_instrumentation(runtime, command, Path(self._folder.name), say)
            for runtime in command_runtimes(command)
        ]
        self._spans: _core.Recording | None = None
        self._own_exporter: list[str] = []

    def __enter__(self) -> InsideEvidence:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def environment(self, own: Variables) -> list[tuple[str, str]]:
        """Variables for the server's process: ``own``, which the user gave, and those of the instrumentation."""
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
                ("OTEL_BSP_SCHEDULE_DELAY", "200"),
            ]
        )
        for instrumentation in self._instrumentations:
            added += instrumentation.variables(own)
        return [*own, *added]

    def close(self) -> None:
        """Stops the sources. Closing twice is harmless. Spans that a server sends later are lost."""
        if self._spans is not None:
            return
        for instrumentation in self._instrumentations:
            instrumentation.close()
        self._spans = self._receiver.stop()
        self._folder.cleanup()

    def add_to(self, recording: _core.Recording) -> None:
        """Adds all events to the recording of the client."""
        self.close()
        if self._spans is not None:
            recording.add_recording(self._spans)
        if self._own_exporter:
            recording.add_missing_source(
                "spans",
                f"{self._own_exporter[0]} is set, so the server's spans go where it says and mcpace adds none; "
                "mcpace explain --spans reads them from a file",
            )
        # Where the command did not tell its runtime, the runtimes that were not there are no news.
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
