"""Keeps Runs of the tests of findings for the pictures of docs/findings.md (scripts/finding_pictures.py)."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mcpace import _core
from mcpace.lab.explain.recording_run import explain_recording
from mcpace.report.model.run import Run

FOLDER = "MCPACE_KEEP_RUNS"
"""Environment variable that names the folder. Nothing is kept where it is not set."""
OWN_FOLDERS = "|".join(re.escape(str(place)) for place in (Path.home(), tempfile.gettempdir(), sys.prefix))
OWN_PATH = re.compile(rf"(?:{OWN_FOLDERS})/(?:[^\s/\"']+/)*")
"""The folder of a file of this machine, which means nothing to a reader."""


def keep_recording(recording: _core.Recording, behind: Sequence[Path] = ()) -> None:
    """Keeps the Run that ``mcpace explain`` makes of a recording, with recordings behind a gateway."""
    if FOLDER in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "recording.jsonl.zst"
            recording.save(str(file))
            keep_run(explain_recording(file, behind))


def keep_json(text: str) -> None:
    """Keeps the Run that a command printed with ``--json``."""
    if FOLDER in os.environ:
        keep_run(Run.from_json(text))


def keep_run(run: Run) -> None:
    """Writes the Run to ``CODE.json`` for each of its findings, unless an earlier Run is the clearer picture."""
    if FOLDER not in os.environ:
        return
    text = OWN_PATH.sub("", run.to_json())
    for code in {finding.code for case in run.cases for finding in case.findings}:
        file = Path(os.environ[FOLDER]) / f"{code}.json"
        if not file.exists() or clarity(run, code) > clarity(Run.load(file), code):
            file.write_text(text, encoding="utf-8")


def clarity(run: Run, code: str) -> tuple[bool, int]:
    """Rank of a Run as the picture of a finding: with calls of a client program, which the report draws, then with few
    other causes.
    """
    found = [case for case in run.cases if code in {finding.code for finding in case.findings}]
    codes = {finding.code for case in run.cases for finding in case.findings}
    return any(case.trials_s for case in found), -len(codes)
