"""The servers behind the flight recorder: the recordings in progress and the newest of each other server, explained.

Design constraint: a recording may be explained for as long as it takes to fill the page once, and then not again for
forty times as long, since the page asks each second. A recording is opened only by its name in the folder's own
listing, so no request can name a path.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from mcpace.lab.errors import UsageProblem
from mcpace.lab.explain.recording_run import explain_recording
from mcpace.lab.hosts.flights import Flight, list_flights
from mcpace.report.page.build import head, page_of
from mcpace.report.page.model import Entry, Head, Page
from mcpace.report.words.quantities import clean
from mcpace.system.files import try_lock

WAIT_FACTOR = 40.0
"""Pause after an explanation, as a multiple of its time."""
SHORTEST_WAIT_S = 1.0
MOST_SERVERS = 200
MOST_IN_USE = 50
"""Recordings of one server that are looked at for those in progress, the newest."""


@dataclass(frozen=True)
class _Explained:
    """The page of a recording, or the reason why there is none."""

    stamp: tuple[int, int]
    page: Page | None
    reason: str
    again_at: float
    """Monotonic time before which the recording is not explained again."""


class Flights:
    """The recordings below the user's folder of flight recordings."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        """Is held for a look at the members below, never for an explanation."""
        self._known: dict[str, _Explained] = {}
        self._turns: dict[str, threading.Lock] = {}
        """For each recording, the lock of the request that explains it."""

    def entries(self) -> list[Entry]:
        """An entry for each recording in progress, then one for each other server, those of the newest first."""
        shown = self._shown()
        with self._lock:
            self._known = {name: known for name, known in self._known.items() if name in shown}
            self._turns = {name: turn for name, turn in self._turns.items() if name in shown}
        entries = [entry for name, (flight, file) in shown.items() if (entry := self._entry(name, flight, file))]
        entries.sort(key=lambda entry: (entry.state == "live", entry.changed), reverse=True)
        return entries

    def page(self, name: str) -> Page | None:
        """The page of a recording as far as it is written; ``None`` where it is not listed.

        Raises :class:`UsageProblem` where the file can't be explained.
        """
        found = self._shown().get(name)
        if found is None:
            return None
        flight, file = found
        explained = self._explained(name, flight, file)
        if explained.page is None:
            raise UsageProblem(explained.reason)
        return explained.page

    def _shown(self) -> dict[str, tuple[Flight, Path]]:
        shown: dict[str, tuple[Flight, Path]] = {}
        for flight in list_flights(self._root)[:MOST_SERVERS]:
            files = flight.recordings()
            for file in [file for file in files[:MOST_IN_USE] if is_in_use(file)] or files[:1]:
                shown[_name(flight, file)] = flight, file
        return shown

    def _entry(self, name: str, flight: Flight, file: Path) -> Entry | None:
        try:
            changed = file.stat().st_mtime
            explained = self._explained(name, flight, file)
        except OSError:
            return None  # it made room for newer ones
        if explained.page is None:
            return Entry(
                id=name, state="unreadable", changed=changed, reason=f"{clean(flight.server, 60)}: {explained.reason}"
            )
        return Entry(id=name, state="live" if is_in_use(file) else "done", changed=changed, head=explained.page.head)

    def _explained(self, name: str, flight: Flight, file: Path) -> _Explained:
        found = file.stat()
        stamp = (found.st_mtime_ns, found.st_size)
        with self._lock:
            known = self._known.get(name)
            if known is not None and (known.stamp == stamp or time.monotonic() < known.again_at):
                return known
            turn = self._turns.setdefault(name, threading.Lock())
        # Another request explains the recording: its last explanation is returned, and the first one is awaited.
        if not turn.acquire(blocking=known is None) and known is not None:
            return known
        try:
            with self._lock:
                newer = self._known.get(name)
            if newer is not None and newer is not known:
                return newer
            explained = _explain(flight, file, stamp)
            with self._lock:
                self._known[name] = explained
            return explained
        finally:
            turn.release()


def is_in_use(file: Path) -> bool:
    """Whether a flight recorder writes the file: it locks a file beside it, since readers of a locked file fail on
    Windows."""
    try:
        with file.with_name(f"{file.name}.lock").open("rb") as opened:
            return not try_lock(opened.fileno(), is_shared=True)
    except OSError:
        return False


def _explain(flight: Flight, file: Path, stamp: tuple[int, int]) -> _Explained:
    started = time.monotonic()
    page, reason = None, ""
    try:
        page = page_of(run := explain_recording(file))
        page.head = _server_head(head(run), flight)
    except UsageProblem as problem:
        reason = clean(problem, 300)
    now = time.monotonic()
    return _Explained(stamp, page, reason, now + max(SHORTEST_WAIT_S, WAIT_FACTOR * (now - started)))


def _server_head(told: Head, flight: Flight) -> Head:
    return told.model_copy(
        update={"subjects": clean(flight.server, 60), "targets": clean(_home_path(flight.configuration), 200)}
    )


def _home_path(path: str) -> str:
    home = Path.home()
    return f"~{path.removeprefix(str(home))}" if path.startswith(f"{home}/") else path


def _name(flight: Flight, file: Path) -> str:
    return f"{flight.folder.name}/{file.name}".encode("utf-8", "backslashreplace").decode()
