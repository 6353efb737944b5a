"""The private folder of the reports: one folder for each call, readable by its owner only."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from mcpace.lab.errors import UsageProblem
from mcpace.lab.paths import cache_folder


def default_report_folder() -> Path:
    """Folder of the reports where the user names none."""
    return cache_folder() / "reports"


def open_report_folder(folder: Path) -> Path:
    """Creates the folder of the reports, and returns its absolute path.

    Raises :class:`UsageProblem` where the folder can't be made, or other users can read it or write to it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise UsageProblem(f"cannot make the folder of the reports {folder}: {error.strerror}") from error
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise UsageProblem(
            f"other users can read or write the folder of the reports {folder}: name another with --reports, or run "
            f"chmod 700 {folder}"
        )
    return folder.resolve()


def make_call_folder(reports: Path, kind: str) -> Path:
    """Creates the folder of one call, with a name that is not taken.

    Raises :class:`UsageProblem` where that is not possible.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}-", dir=reports))
    except OSError as error:
        raise UsageProblem(f"cannot write to the folder of the reports {reports}: {error.strerror}") from error
