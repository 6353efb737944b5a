"""Evidence about the inside of a server that mcpace starts: the spans of its requests, and samples of its stacks.

Each source is optional. A source that gave nothing is an event of the recording, so that the report names it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mcpace import _core
from mcpace.lab.environments.releases import Say
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.inside.overlay import ensure_overlay

SAMPLE_PERIOD_S = 0.005
START = Path(__file__).parent / "start"
"""Folder of the module that instruments an interpreter as it starts."""


class InsideEvidence:
    """Collects the evidence until it is closed. Use as a context manager."""

    def __init__(self, say: Say) -> None:
        """Installs the overlay on first use; ``say`` reports that."""
        self._problem = ""
        self._overlay: Path | None = None
        try:
            self._overlay = ensure_overlay(say)
        except EnvironmentProblem as problem:
            self._problem = str(problem)
        self._folder = tempfile.TemporaryDirectory(prefix="mcpace-inside-")
        self._report = Path(self._folder.name) / "report"
        self._receiver = _core.SpanReceiver()
        # The server's processes are descendants of this one.
        self._sampler = _core.StackSampler(os.getpid(), period_s=SAMPLE_PERIOD_S)
        self._recordings: list[_core.Recording] = []
        self._missing: list[str] = []

    def __enter__(self) -> InsideEvidence:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def environment(self, own: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Variables for the server's process: ``own``, which the user gave, and those of the instrumentation."""
        if self._overlay is None:
            return list(own)
        own_path = dict(own).get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        return [
            *own,
            ("PYTHONPATH", os.pathsep.join(filter(None, [str(START), own_path]))),
            ("MCPACE_INSIDE_PYTHONPATH", own_path),
            ("MCPACE_INSIDE_OVERLAY", str(self._overlay)),
            ("MCPACE_INSIDE_REPORT", str(self._report)),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", self._receiver.endpoint),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_LOGS_EXPORTER", "none"),
            ("OTEL_BSP_SCHEDULE_DELAY", "200"),
        ]

    def close(self) -> None:
        """Stops the sources. Closing twice is harmless. Spans that a server sends later are lost."""
        if self._recordings:
            return
        self._recordings = [self._sampler.stop(), self._receiver.stop()]
        if self._problem:
            self._missing.append(self._problem)
        elif self._report.exists():
            lines = self._report.read_text(encoding="utf-8", errors="replace").splitlines()
            self._missing += [f"OpenTelemetry can't be loaded in the server: {line}" for line in lines[:1]]
        self._folder.cleanup()

    def add_to(self, recording: _core.Recording) -> None:
        """Adds all events to the recording of the client."""
        self.close()
        for own in self._recordings:
            recording.add_recording(own)
        for reason in self._missing:
            recording.add_missing_source("spans", reason)
