"""Instruments Python programs with OpenTelemetry, and samples their stacks from outside."""

from __future__ import annotations

import os
from pathlib import Path

from mcpace import _core
from mcpace.lab.environments.releases import Say
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.inside.instrumentation import Variables
from mcpace.lab.inside.overlay import ensure_overlay

SAMPLE_PERIOD_S = 0.005
START = Path(__file__).parent / "start"
"""Folder of the module that instruments an interpreter as it starts."""


class PythonInstrumentation:
    """OpenTelemetry on the path of Python programs, and py-spy's samples of the descendants of this program."""

    def __init__(self, folder: Path, say: Say) -> None:
        """Installs the overlay on first use; ``say`` reports that. ``folder`` is for the programs' reports."""
        self._report = folder / "python-report"
        self._missing: list[str] = []
        self._overlay: Path | None = None
        try:
            self._overlay = ensure_overlay(say)
        except EnvironmentProblem as problem:
            self._missing.append(str(problem))
        # The server's processes are descendants of this one.
        self._sampler = _core.StackSampler(os.getpid(), period_s=SAMPLE_PERIOD_S)
        self._samples: _core.Recording | None = None

    def variables(self, own: Variables) -> list[tuple[str, str]]:
        """Returns the variables that :mod:`mcpace.lab.inside.start.sitecustomize` reads."""
        if self._overlay is None:
            return []
        own_path = dict(own).get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        return [
            ("PYTHONPATH", os.pathsep.join(filter(None, [str(START), own_path]))),
            ("MCPACE_INSIDE_PYTHONPATH", own_path),
            ("MCPACE_INSIDE_OVERLAY", str(self._overlay)),
            ("MCPACE_INSIDE_REPORT", str(self._report)),
        ]

    def close(self) -> None:
        """Stops the sampler and reads the programs' reports."""
        if self._samples is not None:
            return
        self._samples = self._sampler.stop()
        if self._report.exists():
            lines = self._report.read_text(encoding="utf-8", errors="replace").splitlines()
            self._missing += [f"OpenTelemetry can't be loaded in the server: {line}" for line in lines[:1]]

    def add_to(self, recording: _core.Recording) -> None:
        """Adds the samples."""
        if self._samples is not None:
            recording.add_recording(self._samples)
        for reason in self._missing:
            recording.add_missing_source("spans", reason)
