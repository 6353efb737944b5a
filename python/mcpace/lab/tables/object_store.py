"""Tables in an object store, through pyarrow's file systems.

Design constraint: pyarrow opens the network, and DuckDB does not. DuckDB gets a dataset of each table, of which pyarrow
reads the columns, days and groups of rows that a question needs. The footer of each file is read once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import TimeoutError as NoResult
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow
from pyarrow import dataset, fs

from mcpace.lab.errors import EXIT_UNREACHABLE, LabError, UsageProblem
from mcpace.lab.files import is_unicode
from mcpace.lab.tables.daemon_threads import INTERRUPTED, end_without_waiting, run_on_daemon
from mcpace.lab.tables.schema import PARTITIONS, TABLES, VERSION_KEY, arrow_schema, check_version
from mcpace.lab.targets import redact_url

LONGEST_REASON = 300
FOOTERS_AT_ONCE = 16
RETRY_LIMIT = "retry_limit_seconds"
RETRY_LIMIT_S = 30
"""Time in which pyarrow repeats requests to Google's store. Its own limit is 15 minutes. S3 ends after three tries."""
SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""Variables whose values no message has."""
UNREADABLE = (pyarrow.ArrowException, OSError, ValueError)
Item = TypeVar("Item")
Result = TypeVar("Result")


def open_system(place: str, option: str = "") -> tuple[fs.FileSystem, str]:
    """The file system of a URL such as ``s3://bucket/folder``, and the path in it.

    ``option``: the option of the command line that has the URL, for messages.

    Raises :class:`UsageProblem` where it can't be used.
    """
    shown = f"{option} {redact_url(place)}".strip()
    if not is_unicode(place):
        raise UsageProblem(f"{option or 'the URL of a store'} must be UTF-8 text")
    try:
        parts = urlsplit(place)
        if "@" in parts.netloc:
            raise UsageProblem(
                f"{shown} has a user or a secret in its URL: use the store's own variables, such as AWS_ACCESS_KEY_ID "
                "and AWS_SECRET_ACCESS_KEY"
            )
        if parts.scheme in ("gs", "gcs") and RETRY_LIMIT not in parts.query:
            limit = f"{RETRY_LIMIT}={RETRY_LIMIT_S}"
            place = parts._replace(query=f"{parts.query}&{limit}" if parts.query else limit).geturl()
        system, root = fs.FileSystem.from_uri(place)
    except UNREADABLE as error:
        raise UsageProblem(f"{shown} can't be used: {reason(error, place)}") from error
    if system.type_name == "s3":
        # That of a URL tries for more than a minute, and the constructor's own is three tries of three seconds.
        _, [settings] = system.__reduce__()
        system = fs.S3FileSystem(**settings)
    return system, root.rstrip("/")


@dataclass(frozen=True)
class ObjectStore:
    """A folder in one of pyarrow's file systems."""

    system: fs.FileSystem
    root: str

    def open_new(self, path: str) -> Any:
        return self.system.open_output_stream(self._whole(path))

    def publish(self, temporary: str, path: str) -> None:
        self.system.move(self._whole(temporary), self._whole(path))

    def remove(self, path: str) -> None:
        try:
            self.system.delete_file(self._whole(path))
        except FileNotFoundError:
            return

    def files_of(self, recording: str) -> list[str]:
        chosen = fs.FileSelector(self.root, allow_not_found=True, recursive=True)
        ending = f"-{recording}.parquet"
        paths = [one.path for one in self.system.get_file_info(chosen) if one.path.endswith(ending)]
        return [str(PurePosixPath(path).relative_to(self.root)) for path in paths]

    def _whole(self, path: str) -> str:
        return f"{self.root}/{path}"


def open_datasets(place: str, timeout_s: float, needed: Collection[str], since: date | None) -> dict[str, Any]:
    """A dataset for each of the tables ``needed`` that has files. Files of days before ``since`` are left out.

    Raises :class:`UsageProblem` where the store has no tables, a file is damaged or has a schema of the future, and
    :class:`LabError` where the store can't be read or takes longer than the limit.
    """
    shown = redact_url(place)

    def read() -> dict[str, Any]:
        system, root = open_system(place)
        if not root:
            raise UsageProblem(f"{shown} names no bucket: write s3://BUCKET/FOLDER")
        tables = _find_tables(system, root)
        if not tables:
            raise UsageProblem(f"{shown} has no tables: mcpace export RECORDING --parquet {shown} writes them")
        scheme = urlsplit(place).scheme
        files = {table: _find_files(system, f"{root}/{table}", since) for table in tables if table in needed}
        return {table: _dataset(system, scheme, table, found) for table, found in files.items() if found}

    try:
        return _limit(read, timeout_s)
    except NoResult as error:
        raise LabError(
            f"reading the list of files in {shown} took longer than {timeout_s:g} s: ask about less time with --since, "
            "or give --timeout more"
        ) from error
    except UNREADABLE as error:
        raise LabError(f"cannot read {shown}: {reason(error)}") from error


def reason(error: Exception, place: str = "") -> str:
    """The first line of an error's message, without secrets of the environment and of the URL ``place``."""
    text = mask_secrets(str(getattr(error, "strerror", None) or error))
    if place:
        text = text.replace(place, redact_url(place))
    return " ".join(text.partition("\n")[0].split())[:LONGEST_REASON]


def mask_secrets(text: str) -> str:
    """The text without the secrets of the environment, in case a store repeats them."""
    for name in SECRETS:
        if secret := os.environ.get(name):
            text = text.replace(secret, "…")
    return text


def _limit(work: Callable[[], Result], timeout_s: float) -> Result:
    """The result of ``work`` on a daemon thread, which is abandoned after the limit or after Ctrl-C.

    A store that sends a byte now and then never ends a request.
    """
    done = run_on_daemon(work)
    try:
        return done.result(timeout_s)
    except (NoResult, KeyboardInterrupt) as error:
        if not done.done():
            end_without_waiting(EXIT_UNREACHABLE if isinstance(error, NoResult) else INTERRUPTED)
        raise


def _map_on_daemons(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The results of ``work``, :data:`FOOTERS_AT_ONCE` at a time."""
    shares = [items[number::FOOTERS_AT_ONCE] for number in range(min(FOOTERS_AT_ONCE, len(items)))]
    running = [run_on_daemon(partial(lambda share: [work(item) for item in share], share)) for share in shares]
    results: list[Any] = [None] * len(items)
    for number, done in enumerate(running):
        results[number::FOOTERS_AT_ONCE] = done.result()
    return results


def _find_tables(system: fs.FileSystem, root: str) -> list[str]:
    try:
        names = {one.base_name for one in system.get_file_info(fs.FileSelector(root))}
    except FileNotFoundError:  # a bucket that does not exist is another error
        return []
    return [table for table in TABLES if table in names]


def _find_files(system: fs.FileSystem, folder: str, since: date | None) -> list[fs.FileInfo]:
    """The files of a table: ``day=…/source=…/NAME.parquet``."""
    folders = [folder]
    if since is not None:
        days = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        folders = [one.path for one in days if one.base_name >= f"day={since}"]
    found = []
    for place in folders:
        for one in system.get_file_info(fs.FileSelector(place, allow_not_found=True, recursive=True)):
            match PurePosixPath(one.path).relative_to(folder).parts:
                case [day, source, name] if (
                    one.is_file
                    and day.startswith("day=")
                    and source.startswith("source=")
                    and name.endswith(".parquet")
                    and name[0] != "."
                ):
                    found.append(one)
    return sorted(found, key=lambda one: str(one.path))


def _dataset(system: fs.FileSystem, scheme: str, table: str, files: list[fs.FileInfo]) -> Any:
    """The dataset of a table. Columns that a file lacks are null there."""
    format_ = dataset.ParquetFileFormat()

    def open_file(info: fs.FileInfo) -> Any:
        shown = f"{scheme}://{info.path}"
        *_, day, source, _ = PurePosixPath(info.path).parts
        partition = (dataset.field("day") == unquote(day.removeprefix("day="))) & (
            dataset.field("source") == unquote(source.removeprefix("source="))
        )
        fragment = format_.make_fragment(info.path, system, partition, file_size=info.size)
        try:
            fragment.ensure_complete_metadata()
        except pyarrow.ArrowInvalid as error:
            raise UsageProblem(
                f"{shown} is no whole Parquet file: export its recording again, or delete the file"
            ) from error
        version = (fragment.metadata.metadata or {}).get(VERSION_KEY.encode(), b"")
        check_version(shown, version.decode(errors="replace"))
        return fragment

    fragments = _map_on_daemons(open_file, files)
    known = arrow_schema(table, "", "").remove_metadata()
    more: dict[str, pyarrow.Field] = {}
    for fragment in fragments:
        for column in fragment.physical_schema:
            kept = more.setdefault(column.name, column)
            wanted = known.field(column.name) if column.name in known.names else kept
            if column.type != wanted.type:
                raise UsageProblem(
                    f"the files of the table {table} don't fit together: the column {column.name} is {column.type} in "
                    f"{scheme}://{fragment.path}, and {wanted.type} elsewhere"
                )
    fields = [pyarrow.field(one.name, one.type) for one in known]
    fields += [pyarrow.field(one.name, one.type) for one in more.values() if one.name not in known.names]
    fields += [pyarrow.field(one.name, pyarrow.string()) for one in PARTITIONS]
    return dataset.FileSystemDataset(fragments, pyarrow.schema(fields), format_, system)
