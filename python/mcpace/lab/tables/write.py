"""Writing of recordings as Parquet files, in a local folder or in an object store.

Design constraint: a file has its final name only when it is complete. The name holds the identity of the recording, so
that a second export of a recording replaces the first. Rows are written in batches, so their number needs no memory.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pyarrow
from pyarrow import parquet

from mcpace import __version__, _core
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.hosts.flights import read_flight
from mcpace.lab.tables.object_store import ObjectStore, open_system, reason
from mcpace.lab.tables.rows import Identity, Row, identify, recording_rows
from mcpace.lab.tables.schema import TABLES, arrow_schema

ROWS_AT_ONCE = 65_536
MOST_FILES = 512
"""Files that one recording may have: one for each table and day."""
NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
LONGEST_NAME = 60


class Store(Protocol):
    """A place for files, named by paths with slashes."""

    def open_new(self, path: str) -> Any:
        """A new file for writing bytes."""

    def publish(self, temporary: str, path: str) -> None:
        """Gives a complete file its final name and replaces a file of that name."""

    def remove(self, path: str) -> None:
        """Removes a file. Does nothing where there is none."""

    def files_of(self, recording: str) -> list[str]:
        """The files of a recording, by its identity."""


@dataclass(frozen=True)
class LocalFolder:
    """A folder of this machine. Folders and files are their owner's alone."""

    root: Path

    def open_new(self, path: str) -> Any:
        place = self.root / path
        for folder in reversed([place.parent, *place.parent.relative_to(self.root).parents]):
            (self.root / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        return os.fdopen(os.open(place, flags, 0o600), "wb")

    def publish(self, temporary: str, path: str) -> None:
        with (self.root / temporary).open("rb+") as file:
            os.fsync(file.fileno())
        (self.root / temporary).replace(self.root / path)

    def remove(self, path: str) -> None:
        (self.root / path).unlink(missing_ok=True)

    def files_of(self, recording: str) -> list[str]:
        found = (one for table in TABLES for one in (self.root / table).glob(f"day=*/source=*/*-{recording}.parquet"))
        return [one.relative_to(self.root).as_posix() for one in found]


def open_store(place: str) -> Store:
    """The store of ``place``: a folder, or a URL of pyarrow's file systems such as ``s3://bucket/folder``.

    Raises :class:`UsageProblem` where it can't be used.
    """
    if "://" not in place:
        root = Path(place)
        if root.exists() and not root.is_dir():
            raise UsageProblem(f"--parquet {place} is a file: name a folder")
        return LocalFolder(root.resolve())
    return ObjectStore(*open_system(place, "--parquet"))


def source_name(path: Path, identity: Identity, source: str | None) -> str:
    """The value of the partition ``source``: as given, a host's name of the server, or made of its address."""
    flight = read_flight(path.resolve().parent)
    name = source or (flight.server if flight is not None else "")
    if not name:
        parts = urlsplit(identity.server) if "://" in identity.server else None
        name = f"{parts.netloc}{parts.path}" if parts else re.split(r"[/\\]", identity.server)[-1]
    return NO_NAME.sub("-", name).strip("-.")[:LONGEST_NAME] or "unknown"


def write_recording(store: Store, recording: _core.Recording, path: Path, source: str | None = None) -> dict[str, int]:
    """Writes all tables of a recording, and removes files of an earlier export of it. Returns the rows by table.

    After an exception, the files of an earlier export are unchanged. Raises :class:`LabError` where the store refuses a
    file, and :class:`UsageProblem` where the recording has values that can't be written.
    """
    identity = identify(path)
    stem = NO_NAME.sub("-", path.name.removesuffix(".zst").removesuffix(".jsonl")).strip("-.")[:LONGEST_NAME]
    name = f"{stem or 'recording'}-{identity.recording}.parquet"
    try:
        files = _Files(store, identity.recording, f"source={source_name(path, identity, source)}", name)
        with files.removed_on_error():
            files.write(recording_rows(recording, identity))
            before = store.files_of(identity.recording)
            files.publish()
        for old in set(before) - files.paths:
            store.remove(old)
    except UsageProblem as problem:
        raise UsageProblem(f"{path}: {problem}") from problem
    except (pyarrow.ArrowException, OSError) as error:
        raise LabError(f"cannot write the tables of {path}: {reason(error)}") from error
    return files.rows


@dataclass
class _Files:
    """The files of one recording, until they are published."""

    store: Store
    recording: str
    source: str
    name: str
    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))
    paths: set[str] = field(default_factory=set)
    _writers: dict[tuple[str, str], tuple[Any, parquet.ParquetWriter]] = field(default_factory=dict)
    _temporary: dict[str, str] = field(default_factory=dict)
    """Final path of each temporary file."""
    _waiting: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)

    def write(self, rows: Iterable[Row]) -> None:
        waiting = 0
        for table, day, row in rows:
            self._waiting.setdefault((table, day), []).append(row)
            self.rows[table] += 1
            waiting += 1
            if waiting >= ROWS_AT_ONCE:
                self._write_waiting()
                waiting = 0
        self._write_waiting()

    def publish(self) -> None:
        self._close()
        for temporary, path in list(self._temporary.items()):
            self.store.publish(temporary, path)
            self.paths.add(path)
            del self._temporary[temporary]

    @contextmanager
    def removed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            try:
                self._close()
            finally:
                for temporary in self._temporary:
                    self.store.remove(temporary)
            raise

    def _write_waiting(self) -> None:
        for (table, day), rows in self._waiting.items():
            schema = arrow_schema(table, self.recording, __version__)
            self._writer(table, day, schema).write_table(pyarrow.Table.from_pylist(rows, schema))
        self._waiting.clear()

    def _writer(self, table: str, day: str, schema: pyarrow.Schema) -> parquet.ParquetWriter:
        if (table, day) not in self._writers:
            if len(self._writers) >= MOST_FILES:
                raise UsageProblem(f"the recording has times of more than {MOST_FILES // len(TABLES)} days")
            folder = f"{table}/day={day}/{self.source}"
            temporary = f"{folder}/.{self.name}.{secrets.token_hex(4)}.part"
            file = self.store.open_new(temporary)
            self._temporary[temporary] = f"{folder}/{self.name}"
            self._writers[table, day] = (file, parquet.ParquetWriter(file, schema, compression="zstd"))
        return self._writers[table, day][1]

    def _close(self) -> None:
        while self._writers:
            _, (file, writer) = self._writers.popitem()
            try:
                writer.close()
            finally:
                file.close()
