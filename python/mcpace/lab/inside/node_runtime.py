"""Instruments programs of Node.js: spans by OpenTelemetry, stacks and pauses by Node.js itself.

The module ``node/start.cjs`` runs first in each program, and writes a file of evidence.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mcpace import _core
from mcpace.lab.environments.installers.npm import NPM_OPTIONS, first_lines
from mcpace.lab.environments.installers.steps import require_tool, run_step
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.inside.instrumentation import Variables, missing_on_failure, user_exporter_settings
from mcpace.lab.inside.node_evidence import MOST_PROGRAMS, ProgramEvidence, read_program
from mcpace.lab.inside.node_stacks import MOST_BYTES, EvidenceLimits
from mcpace.lab.inside.overlay import Overlay, ensure_overlay

SOURCES = Path(__file__).parent / "node"
START = SOURCES / "start.cjs"
LABEL = "OpenTelemetry for Node.js"
TOO_LARGE = (
    f"the programs of Node.js wrote more than {MOST_BYTES >> 20} MiB of evidence, and the rest was left out: "
    "make fewer calls, or load the server for a shorter time"
)


def install_packages(folder: Path, label: str) -> None:
    """Installs the packages of OpenTelemetry. Their install scripts do not run."""
    npm = require_tool("npm", label, REMEDIES["npm"])
    run_step([npm, "ci", "--omit=dev", *NPM_OPTIONS], label, cwd=folder, reason=first_lines)


OVERLAY = Overlay("node", LABEL, (SOURCES / "package.json", SOURCES / "package-lock.json"), install_packages)


class NodeInstrumentation:
    """A module that each program of Node.js loads first, by NODE_OPTIONS, and the files that these programs leave."""

    def __init__(self, folder: Path, say: Say) -> None:
        """Installs the overlay on first use; ``say`` reports that. ``folder`` is for the programs' files."""
        self._folder = folder / "node"
        self._folder.mkdir(mode=0o700)
        self._missing: list[tuple[str, str]] = []
        self._programs: list[ProgramEvidence] | None = None
        self._overlay = ""
        with missing_on_failure("spans", LABEL, self._miss):
            self._overlay = str(ensure_overlay(OVERLAY, say))

    def variables(self, own: Variables) -> list[tuple[str, str]]:
        """Returns the variables that ``start.cjs`` reads."""
        own_options = dict(own).get("NODE_OPTIONS", os.environ.get("NODE_OPTIONS", ""))
        quoted = str(START).replace("\\", "\\\\").replace('"', '\\"')
        return [
            ("NODE_OPTIONS", f'{own_options} --require "{quoted}"'.strip()),
            ("MCPACE_INSIDE_NODE_OPTIONS", own_options),
            ("MCPACE_INSIDE_NODE_FOLDER", str(self._folder)),
            ("MCPACE_INSIDE_NODE_PACKAGES", "" if user_exporter_settings(own) else self._overlay),
        ]

    def close(self) -> None:
        """Reads the programs' files."""
        if self._programs is not None:
            return
        self._programs = []
        with missing_on_failure("stacks", "evidence of Node.js", self._miss):
            self._read_programs(self._programs)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read_programs(self, programs: list[ProgramEvidence]) -> None:
        limits = EvidenceLimits()
        files = sorted(self._folder.glob("*.jsonl"))[:MOST_PROGRAMS]
        programs.extend(read_program(file, limits) for file in files)
        if limits.bytes <= 0:
            self._miss("stacks", TOO_LARGE)
        if not files:
            self._miss("stacks", "no program of Node.js ran; Bun and Deno are not looked into")

    def has_evidence(self) -> bool:
        """Whether a program left a file."""
        return bool(self._programs)

    def add_to(self, recording: _core.Recording) -> None:
        """Adds the spans, the samples and the pauses."""
        for program in self._programs or ():
            program.add_to(recording)
        for source, reason in self._missing:
            recording.add_missing_source(source, reason)

    def _miss(self, source: str, reason: str) -> None:
        self._missing.append((source, reason))
