"""The private folder of the reports: one folder for each call, readable by its owner only."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcpace.lab.errors import UsageProblem
from mcpace.lab.paths import cache_folder
from mcpace.system.files import is_own


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
    if not is_own(status, 0o077):
        raise UsageProblem(
            f"other users can read or write the folder of the reports {folder}: name another with --reports, or run "
            f"chmod 700 {folder}"
        )
    return folder.resolve()


@contextmanager
def call_folder(reports: Path, kind: str) -> Iterator[Path]:
    """Yields a new folder of one call. Removes the folder where the call fails, since it has no result then.

    Raises :class:`UsageProblem` where the folder can't be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}-", dir=reports))
    except OSError as error:
        raise UsageProblem(f"cannot write to the folder of the reports {reports}: {error.strerror}") from error
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def input_folder(folder: Path) -> Iterator[Path]:
    """Yields a folder for copies of files, inside the folder of a call, and removes it at the end."""
    place = folder / "input"
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
