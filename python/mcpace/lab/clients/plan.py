"""What an experiment is to do, resolved: small frozen values, made once from the command line's words."""

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
"""Characters of a recording's name: file systems take 255 bytes."""


@dataclass(frozen=True)
class Settings:
    """What all experiments on targets share."""

    trials: int = DEFAULT_TRIALS
    """Sessions, each a trial of every operation; the first is cold and shown apart."""
    hold_s: float = DEFAULT_HOLD_S
    """How long ``profile:notion`` keeps a reply's stream open after the result."""
    faults: tuple[str, ...] = ()
    """Injected into profiles, as ``kind=size``."""
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    """Limit of each operation."""
    keep_recordings: Path | None = None
    """Folder for the recordings; ``None`` keeps none."""
    calls: int = DEFAULT_CALLS
    """Lists and calls of each session at most: the first is shown apart from the later ones."""

    def make_folder(self) -> None:
        """Makes the recordings' folder, before anything is measured that it is wanted for.

        Raises :class:`LabError` where it can't be made or written.
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
        """Where the recording of who is called ``label`` is kept, if it is."""
        if self.keep_recordings is None:
            return None
        name = "".join(c if c.isalnum() or c in "@.-" else "-" for c in label)[:LONGEST_LABEL]
        return self.keep_recordings / f"{name}.jsonl.zst"

    def as_options(self) -> dict[str, Any]:
        """For the Run's ``options``."""
        return {
            "trials": self.trials,
            "hold_s": self.hold_s,
            "faults": list(self.faults),
            "time_limit_s": self.time_limit_s,
            "calls": self.calls,
        }


@dataclass(frozen=True)
class Plan:
    """Subjects × targets × operations × trials."""

    subjects: tuple[str, ...]
    """As users type them: ``python@1.12.1``."""
    targets: tuple[Target, ...]
    settings: Settings = field(default_factory=Settings)


def operations_at(target: Target) -> tuple[Operation, ...]:
    """The operations that make sense at a target: provider construction is OAuth's, a call needs a tool."""
    return tuple(
        operation
        for operation in OPERATIONS
        if (operation != "provider" or target.auth == "oauth") and (operation != "call" or target.tool is not None)
    )
