"""Instruments Python programs with OpenTelemetry, and samples their stacks from outside."""

from __future__ import annotations

import os
from pathlib import Path

from mcpace import _core
from mcpace.lab.environments.installers.steps import run_step
from mcpace.lab.environments.releases import Say
from mcpace.lab.inside.instrumentation import LONGEST_REASON, Variables, missing_on_failure, user_exporter_settings
from mcpace.lab.inside.overlay import Overlay, ensure_overlay
from mcpace.lab.inside.process_timers import ProcessTimers
from mcpace.lab.inside.python_evidence import read_pauses, read_timers
from mcpace.lab.inside.regular_files import open_regular
from mcpace.lab.paths import find_uv
from mcpace.lab.processes.process_usage import process_tree, program_name

SAMPLE_PERIOD_S = 0.005
STARTED = "started"
"""Line that :mod:`mcpace.lab.inside.start.sitecustomize` writes where the instrumentation runs."""
MOST_REPORT_BYTES = 64 << 10
START = Path(__file__).parent / "start"
"""Folder of the module that instruments an interpreter as it starts."""

PACKAGES = Path(__file__).parent / "python_packages.txt"
PACKAGES_FOLDER = "site-packages"
"""Name by which stacks show that its code is no code of the server."""
OLDEST_PYTHON = "3.10"
"""Packages are resolved for this version, and work on all later ones."""


def install_packages(folder: Path, label: str) -> None:
    """Installs the packages of OpenTelemetry, which stand last on the server's path."""
    target = ["--target", str(folder / PACKAGES_FOLDER), "--python-version", OLDEST_PYTHON, "--no-deps"]
    run_step(
        [str(find_uv()), "pip", "install", "--quiet", *target, "--requirements", str(folder / PACKAGES.name)], label
    )


OVERLAY = Overlay("python", "OpenTelemetry for Python", (PACKAGES,), install_packages)


class PythonInstrumentation:
    """The overlay of OpenTelemetry on the path of Python programs, and py-spy's samples of their stacks."""

    def __init__(self, folder: Path, say: Say) -> None:
        """Installs the overlay on first use; ``say`` reports that. ``folder`` is for the programs' reports."""
        self._report = folder / "python-report"
        self._pauses = folder / "python-pauses"
        self._timers = folder / "python-timers"
        self._missing: list[tuple[str, str]] = []
        self._overlay: Path | None = None
        with missing_on_failure("spans", OVERLAY.label, self._miss):
            self._overlay = ensure_overlay(OVERLAY, say) / PACKAGES_FOLDER
        self._pid = os.getpid()
        self._sampler: _core.StackSampler | None = None
        self._samples: _core.Recording | None = None
        self._is_added = False
        self._is_closed = False
        self._uninstrumented = 0
        self._collections: dict[int, list[tuple[int, int]]] = {}
        self._waits: dict[int, ProcessTimers] = {}

    def variables(self, own: Variables) -> list[tuple[str, str]]:
        """Returns the variables that :mod:`mcpace.lab.inside.start.sitecustomize` reads."""
        if self._overlay is None or user_exporter_settings(own):
            return []
        self._is_added = True
        own_path = dict(own).get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        return [
            ("PYTHONPATH", os.pathsep.join(filter(None, [str(START), own_path]))),
            ("MCPACE_INSIDE_PYTHONPATH", own_path),
            ("MCPACE_INSIDE_OVERLAY", str(self._overlay)),
            ("MCPACE_INSIDE_REPORT", str(self._report)),
            ("MCPACE_INSIDE_PAUSES", str(self._pauses)),
            ("MCPACE_INSIDE_TIMERS", str(self._timers)),
        ]

    def watch(self, pid: int) -> None:
        """Samples a process and its descendants; of this process, the descendants only."""
        self._pid = pid
        with missing_on_failure("stacks", f"process {pid}", self._miss):
            self._sampler = _core.StackSampler(pid, period_s=SAMPLE_PERIOD_S)

    def pause(self) -> None:
        """Takes no samples until :meth:`resume`."""
        if self._sampler is not None:
            self._sampler.pause()

    def resume(self) -> None:
        """Goes on sampling."""
        if self._sampler is not None:
            self._sampler.resume()

    def end_sampling(self) -> None:
        """Stops the sampler, and counts the processes that are not instrumented. Ending twice is harmless."""
        if self._sampler is not None and self._samples is None:
            with missing_on_failure("stacks", f"process {self._pid}", self._miss):
                self._uninstrumented = self._uninstrumented_processes()
                self._samples = self._sampler.stop()

    def close(self) -> None:
        """Stops the sampler and reads the programs' reports."""
        if self._is_closed:
            return
        self._is_closed = True
        self.end_sampling()
        if self._is_added:
            with missing_on_failure("spans", "the report of the Python programs", self._miss):
                self._missing += [("spans", reason) for reason in self._failures()]
        with missing_on_failure("pauses", "the pauses of the Python programs", self._miss):
            self._collections = read_pauses(self._pauses)
        with missing_on_failure("stacks", "the timers of the Python programs", self._miss):
            self._waits = read_timers(self._timers)

    def has_evidence(self) -> bool:
        """Whether a stack was sampled."""
        samples = self._samples.events() if self._samples is not None else ()
        return any("source-missing" not in event["event"] for event in samples)

    def add_to(self, recording: _core.Recording) -> None:
        """Adds the samples, the pauses and the timers."""
        if self._samples is not None:
            recording.add_recording(self._samples)
        with missing_on_failure("pauses", "the pauses of the Python programs", recording.add_missing_source):
            for pid, pauses in self._collections.items():
                recording.add_pauses(pid, pauses)
        with missing_on_failure("stacks", "the timers of the Python programs", recording.add_missing_source):
            for pid, waits in self._waits.items():
                waits.add_to(recording, pid)
        for source, reason in self._missing:
            recording.add_missing_source(source, reason)

    def _miss(self, source: str, reason: str) -> None:
        self._missing.append((source, reason))

    def _failures(self) -> list[str]:
        """Reasons why spans are missing."""
        lines = _read_report(self._report)
        failures = [f"OpenTelemetry can't be loaded in the server: {line}" for line in lines if line != STARTED]
        reasons = [failure[:LONGEST_REASON] for failure in failures[:1]]
        has_samples = self._samples is not None and len(self._samples) > 1
        if not lines and has_samples:
            reasons.append(
                "the server's Python does not use the PYTHONPATH that mcpace sets, so OpenTelemetry was not loaded in "
                "it: it runs with -E or -I, or its command sets PYTHONPATH"
            )
        elif others := self._uninstrumented:
            processes = "process" if others == 1 else "processes"
            reasons.append(
                f"the program started {others} Python {processes} of its own, which are not instrumented, so their "
                "requests are unknown: start it with a single worker to see them"
            )
        return reasons

    def _uninstrumented_processes(self) -> int:
        """Number of running Python processes that the watched program started without the instrumentation."""
        if self._pid == os.getpid():
            return 0
        tree = [pid for pid in process_tree(self._pid) if program_name(pid).startswith("python")]
        return sum(not _has_variable(pid, "MCPACE_INSIDE_OVERLAY") for pid in tree)


def _has_variable(pid: int, name: str) -> bool:
    """Whether the process was started with an environment variable; a process that can't be read counts as if."""
    try:
        return f"\0{name}=".encode() in b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return True


def _read_report(path: Path) -> list[str]:
    """The lines of the programs' report; none where it can't be read."""
    try:
        with open_regular(path) as file:
            return file.read(MOST_REPORT_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
