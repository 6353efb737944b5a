"""How a host used the servers of a configuration, from the recordings of the flight recorder (``mcpace wrap``).

Design constraint: recordings are read only, the newest first, and no more of them than a limit of bytes. A file that
can't be read is left out: the recorder may replace it meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from mcpace import _core
from mcpace.lab.hosts.flights import Flight, list_flights
from mcpace.report.model.start import RecordedUse

MOST_RECORDINGS = 100
MOST_BYTES = 64 * 2**20
"""Most bytes of recordings of one server that are read."""


def recorded_use(root: Path, configuration: Path, server: str) -> RecordedUse | None:
    """The recorded use of a server; ``None`` where no session of it was recorded.

    ``root``: the folder of all flight recordings. ``server``: the server's name in ``configuration``.
    """
    place = str(configuration.resolve())
    files = [
        file
        for flight in list_flights(root)
        if flight.server == server and str(Path(flight.configuration).resolve()) == place
        for file in _readable(flight)
    ]
    return _count_use(files) if files else None


def _readable(flight: Flight) -> list[Path]:
    kept: list[Path] = []
    left = MOST_BYTES
    for file in flight.recordings()[:MOST_RECORDINGS]:
        try:
            left -= file.stat().st_size
        except OSError:
            continue
        if left < 0:
            break
        kept.append(file)
    return kept


def _count_use(files: Sequence[Path]) -> RecordedUse | None:
    calls: Counter[str] = Counter()
    answered: set[str] = set()
    sessions, changed = 0, []
    for file in files:
        try:
            methods = _core.explained([str(file)]).methods
            changed_s = file.stat().st_mtime
        except (_core.Problem, OSError, UnicodeEncodeError):
            continue
        # A start that ended before the tools were listed says nothing about their use.
        if any(one["method"] == "tools/list" and one["succeeded"] for one in methods):
            sessions += 1
            changed.append(changed_s)
            for one in methods:
                if one["method"] == "tools/call" and one["name"] is not None:
                    calls[one["name"]] += one["requests"]
                    answered |= {one["name"]} if one["succeeded"] else set()
    if not sessions:
        return None
    return RecordedUse(
        sessions=sessions,
        since=datetime.fromtimestamp(min(changed), UTC).date().isoformat(),
        calls=dict(calls),
        answered=sorted(answered),
    )
