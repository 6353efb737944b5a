"""Evidence about the inside of a server that mcpace starts: the spans of its requests, and samples of its stacks.

Each source is optional. A source that gave nothing is an event of the recording, so that the report names it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from mcpace import _core
from mcpace.lab.environments.releases import Say
from mcpace.lab.inside.instrumentation import Instrumentation, Variables
from mcpace.lab.inside.python_runtime import PythonInstrumentation
from mcpace.lab.inside.runtimes import Runtime, command_runtimes

INSTRUMENTATIONS = {Runtime.PYTHON: PythonInstrumentation}


class InsideEvidence:
    """Collects the evidence until it is closed. Use as a context manager."""

    def __init__(self, command: Sequence[str], say: Say) -> None:
        """Prepares the instrumentation of the runtime that ``command`` starts; ``say`` reports installations."""
        self._folder = tempfile.TemporaryDirectory(prefix="mcpace-inside-")
        self._receiver = _core.SpanReceiver()
        self._instrumentations: list[Instrumentation] = [
            INSTRUMENTATIONS[runtime](Path(self._folder.name), say)
            for runtime in command_runtimes(command)
            if runtime in INSTRUMENTATIONS
        ]
        self._spans: _core.Recording | None = None

    def __enter__(self) -> InsideEvidence:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def environment(self, own: Variables) -> list[tuple[str, str]]:
        """Variables for the server's process: ``own``, which the user gave, and those of the instrumentation."""
        added = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", self._receiver.endpoint),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_LOGS_EXPORTER", "none"),
            ("OTEL_BSP_SCHEDULE_DELAY", "200"),
        ]
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
        for instrumentation in self._instrumentations:
            instrumentation.add_to(recording)
