"""A folder of runs: what is in it, one run, two of them, one in progress.

Design constraint: only what the folder itself lists is ever opened, by its name in that list; so no request can name a
path. Files are bounded, and one that is no run is told of or passed over, never a failure of the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from mcpace.lab.journal import SUFFIX
from mcpace.report.page import head, page_of
from mcpace.report.page_model import Entry, Head, Listing, Live, Page
from mcpace.report.quantities import clean
from mcpace.report.run import Run, RunFormatError
from mcpace.ui.live import read

MOST_FILES = 500
"""The newest are listed."""
MOST_BYTES = 256 * 2**20
"""Of a run."""
MARK = b'"mcpace.run/'
MARKED_WITHIN = 4096
"""Where a run has its schema: other JSON files are nobody's business here."""

Compare = Callable[[Run, Run], Run]


class Missing(LookupError):
    """There is no such run, or no such one any more."""


class Folder:
    """Its runs."""

    def __init__(self, path: Path, compare: Compare) -> None:
        self._path = path
        self._compare = compare
        self._known: dict[str, tuple[tuple[int, int], Entry | None]] = {}

    def listing(self) -> Listing:
        """Those in progress first, then the newest."""
        files = self._files()
        entries = [entry for file in files[:MOST_FILES] if (entry := self._entry(file)) is not None]
        entries.sort(key=lambda entry: entry.state != "live")
        return Listing(folder=clean(self._path, 300), entries=entries, left_out=max(0, len(files) - MOST_FILES))

    def page(self, name: str) -> Page:
        """One run.

        Raises :class:`Missing` and :class:`RunFormatError`.
        """
        return page_of(self._run(name))

    def comparison(self, first: str, second: str) -> Page:
        """Two, the second held against the first. Raises as :meth:`page` does."""
        return page_of(self._compare(self._run(first), self._run(second)))

    def live(self, name: str) -> Live:
        """One in progress.

        Raises :class:`Missing`.
        """
        found = read(self._file(name)) if name.endswith(SUFFIX) else None
        if found is None:
            raise Missing(f"{clean(name, 120)} is no run in progress")
        return found

    def _files(self) -> list[Path]:
        try:
            found = [
                (entry.stat().st_mtime_ns, Path(entry.path))
                for entry in os.scandir(self._path)
                if entry.name.endswith((".json", SUFFIX)) and not entry.name.startswith(".") and entry.is_file()
            ]
        except OSError:
            return []
        return [path for _, path in sorted(found, reverse=True)]

    def _file(self, name: str) -> Path:
        for file in self._files():
            if file.name == name:
                return file
        raise Missing(f"there is no {clean(name, 120)} in {clean(self._path, 200)}")

    def _run(self, name: str) -> Run:
        file = self._file(name)
        if file.stat().st_size > MOST_BYTES:
            raise RunFormatError(f"larger than {MOST_BYTES // 2**20} MiB, which is more than is read")
        return Run.load(file)

    def _entry(self, file: Path) -> Entry | None:
        try:
            found = file.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if file.name.endswith(SUFFIX):
                return self._live_entry(file, found.st_mtime)
            known = self._known.get(file.name)
            if known is None or known[0] != stamp:
                known = self._known[file.name] = (stamp, self._read(file, found.st_mtime))
            return known[1]
        except OSError:
            return None  # gone meanwhile

    def _live_entry(self, file: Path, changed: float) -> Entry | None:
        found = read(file)
        if found is None:
            return None
        told = found.head.model_copy(update={"verdict": [found.step or "beginning"]})
        if found.ended:
            told.verdict = [f"Its program is gone without having saved it: {told.verdict[0]}"]
        return Entry(id=file.name, state="live", changed=changed, head=told)

    def _read(self, file: Path, changed: float) -> Entry | None:
        with file.open("rb") as opened:
            if MARK not in opened.read(MARKED_WITHIN):
                return None
        try:
            told: Head = head(self._run(file.name))
        except RunFormatError as error:
            return Entry(id=file.name, state="unreadable", changed=changed, reason=clean(error, 300))
        return Entry(id=file.name, state="done", changed=changed, head=told)
