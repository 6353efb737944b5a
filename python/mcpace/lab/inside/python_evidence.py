"""The files of evidence that Python programs write while they run: see ``start/sitecustomize.py``.

Design constraint: A program may write anything into the files, and may end at any byte. Damaged records are left out.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mcpace.lab.inside.instrumentation import without_surrogates
from mcpace.lab.inside.process_timers import Frame, ProcessTimers
from mcpace.lab.inside.regular_files import open_regular

PAUSE = struct.Struct("<QQ")
TIMER = struct.Struct("<QQQ")
STACK = struct.Struct("<8192s")
MOST_RECORDS = 65_536
MOST_STACKS = 500
MOST_PROCESSES = 64
MOST_FRAMES = 96
LONGEST_NAME = 400
LAST_LINE = (1 << 32) - 1
PID = re.compile(r"[1-9][0-9]{0,8}")


def read_pauses(prefix: Path) -> dict[int, list[tuple[int, int]]]:
    """Pauses of each process, beginning and end."""
    times = {pid: _read_times(path, PAUSE) for pid, path in _process_files(prefix)}
    return {pid: [(began, ended) for began, ended in pauses] for pid, pauses in times.items() if pauses}


def read_timers(prefix: Path) -> dict[int, ProcessTimers]:
    """Timers of each process."""
    return {
        pid: ProcessTimers(
            _read_stacks(prefix.with_name(f"{prefix.name}-stacks-{pid}")),
            [(began, ended, stack) for began, ended, stack in _read_times(path, TIMER)],
        )
        for pid, path in _process_files(prefix.with_name(f"{prefix.name}-times"))
    }


def _process_files(prefix: Path) -> Iterator[tuple[int, Path]]:
    """The processes that wrote files whose paths begin with ``prefix``, and these files."""
    for path in sorted(prefix.parent.glob(f"{prefix.name}-*"))[:MOST_PROCESSES]:
        pid = path.name.rpartition("-")[2]
        if PID.fullmatch(pid):
            yield int(pid), path


def _read_times(path: Path, record: struct.Struct) -> list[tuple[int, ...]]:
    """Records that begin with the beginning and the end of a time. The rest of a file is zero."""
    return [fields for fields in _read_records(path, record, MOST_RECORDS) if 0 < fields[0] <= fields[1]]


def _read_stacks(path: Path) -> dict[int, Sequence[Frame]]:
    """The stacks of one process by their numbers."""
    stacks: dict[int, Sequence[Frame]] = {}
    for number, (text,) in enumerate(_read_records(path, STACK, MOST_STACKS)):
        try:
            stacks[number] = [_read_frame(*frame) for frame in json.loads(text.rstrip(b"\0"))[:MOST_FRAMES]]
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            continue
    return stacks


def _read_frame(function: object, file: object, line: object) -> Frame:
    number = max(0, min(int(str(line)), LAST_LINE))
    return without_surrogates(str(function)[:LONGEST_NAME]), without_surrogates(str(file)[-LONGEST_NAME:]), number


def _read_records(path: Path, record: struct.Struct, most: int) -> Iterator[tuple[Any, ...]]:
    """The whole records of a regular file; none where it can't be read."""
    try:
        with open_regular(path) as file:
            data = file.read(most * record.size)
    except OSError:
        return
    yield from record.iter_unpack(data[: len(data) - len(data) % record.size])
