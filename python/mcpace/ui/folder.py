"""A folder of runs: its listing, one run, a comparison of two, a run in progress.

Design constraint: a file is opened only by its name in the folder's own listing, so no request can name a path. The
size of files is limited. A file that isn't a run or can't be shown is reported or skipped, and never affects the
others.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from mcpace.lab.journal import SUFFIX
from mcpace.report.model.run import Run, RunFormatError
from mcpace.report.page.build import head, page_of
from mcpace.report.page.model import Entry, Head, Listing, Live, Page
from mcpace.report.words.quantities import clean
from mcpace.ui.flights import Flights
from mcpace.ui.live import Journal

MOST_FILES = 500
"""Maximum number of listed files, the newest."""
MARK = b'"mcpace.run/'
MARKED_WITHIN = 4096
"""Number of leading bytes in which a run has its schema. JSON files without it are ignored."""


class Compare(Protocol):
    """Compares two runs; the result is a run, too. ``names`` are the names of the two."""

    def __call__(self, base: Run, now: Run, /, *, names: tuple[str, str]) -> Run: ...


class Missing(LookupError):
    """The run does not exist, or no longer exists."""


class Folder:
    """The runs of a folder, and the servers behind the flight recorder, where ``flights`` is given."""

    def __init__(self, path: Path, compare: Compare, flights: Flights | None = None) -> None:
        self._path = path
        self._compare = compare
        self._flights = flights
        self._known: dict[str, tuple[tuple[int, int], Entry | None]] = {}
        self._journals: dict[str, Journal] = {}

    def listing(self) -> Listing:
        """All runs: those in progress first, then the others by the time at which they started, the newest first."""
        files = self._run_files()
        self._forget_missing(files)
        entries = [entry for file in files[:MOST_FILES] if (entry := self._file_entry(file)) is not None]
        # The time of a copied or downloaded file is later than that of its run.
        entries.sort(key=lambda entry: entry.head.started if entry.head else "", reverse=True)
        entries.sort(key=lambda entry: entry.state != "live")
        return Listing(
            folder=clean(self._path, 300),
            entries=entries,
            left_out=max(0, len(files) - MOST_FILES),
            flights=self._flights.entries() if self._flights else [],
        )

    def page(self, name: str) -> Page:
        """The page of one run.

        Raises :class:`Missing` and :class:`RunFormatError`. An unforeseen run may raise any other exception.
        """
        return page_of(Run.load(self._known_file(name)))

    def comparison(self, first: str, second: str) -> Page:
        """The page of a comparison of two runs, the second with the first. Raises the exceptions of :meth:`page`."""
        return page_of(
            self._compare(Run.load(self._known_file(first)), Run.load(self._known_file(second)), names=(first, second))
        )

    def live(self, name: str) -> Live:
        """The state of a run in progress.

        Raises :class:`Missing`.
        """
        found = self._file_journal(self._known_file(name)).look() if name.endswith(SUFFIX) else None
        if found is None:
            raise Missing(f"{clean(name, 120)} is no run in progress")
        return found

    def flight(self, name: str) -> Page:
        """The page of a recording of the flight recorder, as far as it is written.

        Raises :class:`Missing`, and :class:`UsageProblem` where the recording can't be explained.
        """
        found = self._flights.page(name) if self._flights else None
        if found is None:
            raise Missing(f"{clean(name, 120)} is not among the newest recordings")
        return found

    def _run_files(self) -> list[Path]:
        try:
            found = [
                (entry.stat().st_mtime_ns, Path(entry.path))
                for entry in os.scandir(self._path)
                if entry.name.endswith((".json", SUFFIX)) and not entry.name.startswith(".") and entry.is_file()
            ]
        except OSError:
            return []
        return [path for _, path in sorted(found, reverse=True)]

    def _known_file(self, name: str) -> Path:
        for file in self._run_files():
            if _file_id(file) == name:
                return file
        raise Missing(f"there is no {clean(name, 120)} in {clean(self._path, 200)}")

    def _file_journal(self, file: Path) -> Journal:
        return self._journals.setdefault(file.name, Journal(file))

    def _forget_missing(self, files: list[Path]) -> None:
        """Removes the state of files that no longer exist."""
        names = {file.name for file in files}
        for held in (self._known, self._journals):
            for name in [name for name in list(held) if name not in names]:
                held.pop(name, None)

    def _file_entry(self, file: Path) -> Entry | None:
        try:
            found = file.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if file.name.endswith(SUFFIX):
                return self._live_entry(file, found.st_mtime)
            known = self._known.get(file.name)
            if known is None or known[0] != stamp:
                known = self._known[file.name] = (stamp, _read_entry(file, found.st_mtime))
            return known[1]
        except OSError:
            return None  # deleted meanwhile

    def _live_entry(self, file: Path, changed: float) -> Entry | None:
        found = self._file_journal(file).look()
        if found is None:
            return None
        told = found.head.model_copy(update={"verdict": [f"{found.head.subjects}: {found.step or 'beginning'}"]})
        if found.ended:
            told.verdict = [f"Its program is gone without having saved it: {told.verdict[0]}"]
        return Entry(id=_file_id(file), state="live", changed=changed, head=told)


def refusal_reason(problem: Exception) -> str:
    """The reason why a readable run can't be shown. It may be a later release's, or hand-made."""
    return f"mcpace can't show this run ({type(problem).__name__}: {clean(problem, 120)})"


def _read_entry(file: Path, changed: float) -> Entry | None:
    with file.open("rb") as opened:
        if MARK not in opened.read(MARKED_WITHIN):
            return None
    try:
        told: Head = head(Run.load(file))
        told.model_dump_json()
    except RunFormatError as error:
        reason = clean(error, 300)
    except OSError:
        raise
    except Exception as error:  # the file may contain anything, and must not prevent listing the others
        reason = refusal_reason(error)
    else:
        return Entry(id=_file_id(file), state="done", changed=changed, head=told)
    return Entry(id=_file_id(file), state="unreadable", changed=changed, reason=reason)


def _file_id(file: Path) -> str:
    """The name of a file, with bytes that aren't UTF-8 escaped."""
    return file.name.encode("utf-8", "backslashreplace").decode()
