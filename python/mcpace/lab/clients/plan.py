"""Plan of an experiment on targets, parsed from the command line."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpace.lab.clients.repeats import DEFAULT_CALLS
from mcpace.lab.errors import LabError
from mcpace.lab.targets import Target

if TYPE_CHECKING:
    from mcpace.report.model.run import Operation

OPERATIONS: tuple[Operation, ...] = ("provider", "connect", "list", "call")
DEFAULT_TRIALS = 5
DEFAULT_HOLD_S = 1.0
DEFAULT_TIME_LIMIT_S = 60.0
LONGEST_LABEL = 150
"""Most characters of a recording's name: file systems allow 255 bytes."""


@dataclass(frozen=True)
class Settings:
    """Settings shared by all experiments on targets."""

    trials: int = DEFAULT_TRIALS
    """Number of sessions, each a trial of every operation. The first is cold and reported separately."""
    hold_s: float = DEFAULT_HOLD_S
    """Seconds that ``profile:notion`` keeps a reply's stream open after the result."""
    faults: tuple[str, ...] = ()
    """Faults to inject into profiles, as ``kind=size``."""
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    """Limit of each operation."""
    keep_recordings: Path | None = None
    """Folder for the recordings; ``None`` keeps none."""
    calls: int = DEFAULT_CALLS
    """Most lists and calls of each session. The first is reported separately from the later ones."""
    may_run_fewer: bool = False
    """Whether the number of trials is no wish of the user's, so that fewer are run where each takes long."""

    def make_folder(self) -> None:
        """Creates the recordings' folder. Call it before the measurement, so that errors come early.

        Raises :class:`LabError` where the folder can't be created or written.
        """
        folder = self.keep_recordings
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise LabError(f"--recordings: cannot write to {folder}: {error.strerror}") from error

    def recording_of(self, label: str) -> Path | None:
        """Path of the recording with this label; ``None`` where recordings aren't kept."""
        if self.keep_recordings is None:
            return None
        name = "".join(c if c.isalnum() or c in "@.-" else "-" for c in label)[:LONGEST_LABEL]
        return self.keep_recordings / f"{name}.jsonl.zst"

    def as_options(self) -> dict[str, Any]:
        """The Run's ``options``."""
        return {
            "trials": self.trials,
            "hold_s": self.hold_s,
            "faults": list(self.faults),
            "time_limit_s": self.time_limit_s,
            "calls": self.calls,
        }


@dataclass(frozen=True)
class Plan:
    """Plan of a comparison of clients: subjects × targets × operations × trials."""

    subjects: tuple[str, ...]
    """As users type them: ``python@1.12.1``."""
    targets: tuple[Target, ...]
    settings: Settings = field(default_factory=Settings)


def operations_at(target: Target) -> tuple[Operation, ...]:
    """Operations that apply to a target: ``provider`` requires OAuth, ``call`` requires a tool."""
    return tuple(
        operation
        for operation in OPERATIONS
        if (operation != "provider" or target.auth == "oauth") and (operation != "call" or target.tool is not None)
    )
