"""Reading of the exported tables with DuckDB: a view for each table.

Design constraint: SQL of a user reads the tables and nothing else. After the views exist, DuckDB opens only the files
of the tables, loads no extension, and its configuration is locked. Only statements that read are run: DuckDB lets a
statement such as COPY, which may be a part of a SELECT, write the files that it may read. A statement's parts are those
of DuckDB's own parser.
"""

from __future__ import annotations

import glob
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from mcpace.lab.errors import EXIT_UNREACHABLE, LabError, UsageProblem
from mcpace.lab.files import files_below, is_unicode
from mcpace.lab.tables.daemon_threads import INTERRUPTED, end_without_waiting, run_on_daemon
from mcpace.lab.tables.schema import PARTITIONS, SQL_TYPES, TABLES, VERSION_KEY, check_version

MEMORY = "800MB"
"""Memory of DuckDB. Larger sorts and groups are moved to files."""
ROWS_AT_ONCE = 1_000
LONGEST_REASON = 300
INTERRUPT_EVERY_S = 0.05
INTERRUPT_LIMIT_S = 2.0
READING_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
"""Queries within a statement that read. Others, such as ``COPY_QUERY_NODE``, write."""
TABLE_FUNCTIONS = ("generate_series", "json_each", "json_tree", "range", "repeat", "unnest")
"""Functions that a statement may use as tables. Others read files, or run a statement that is given as text."""
STORE_FAILED = re.compile(r"reading the stream registered as '(\w+)' failed: (.*)")
"""DuckDB's words for an error of pyarrow."""
Result = TypeVar("Result")
ONE_SELECT = f"--sql takes one SELECT over the tables {', '.join(TABLES)}"
CONFIGURATION: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # Without this, a name in a query may be a variable of this program.
    "python_enable_replacements": "false",
    "memory_limit": MEMORY,
}


@dataclass(frozen=True)
class Tables:
    """The exported tables of a folder."""

    connection: duckdb.DuckDBPyConnection
    timeout_s: float
    abandoned: list[Future[Any]] = field(default_factory=list)
    """Statements that could not be ended. The connection can't be closed while they run."""

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of one of mcpace's own statements.

        Raises :class:`LabError` where it takes longer than the limit, or a file can't be read.
        """
        return self._run(lambda: self.connection.execute(sql, list(values)).fetchall())

    def each(self, sql: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of one of mcpace's own statements, as :meth:`rows`, a part of them at a time."""
        return self._fetch(self._run(lambda: self.connection.execute(sql, list(values))))

    def select(self, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """Columns and rows of a user's statement.

        Raises :class:`UsageProblem` for anything but one statement that reads the tables, and :class:`LabError` where
        it takes longer than the limit.
        """
        statement = _only_statement(sql)
        [(tree,)] = self._run(
            lambda: self.connection.execute("SELECT json_serialize_sql(?)", [statement.query]).fetchall(), "--sql: "
        )
        _check_reads_only(tree)
        cursor = self._run(lambda: self.connection.execute(statement), "--sql: ")
        return [str(column[0]) for column in cursor.description or ()], self._fetch(cursor, "--sql: ")

    def _fetch(self, cursor: duckdb.DuckDBPyConnection, prefix: str = "") -> Iterator[tuple[Any, ...]]:
        while rows := self._run(lambda: cursor.fetchmany(ROWS_AT_ONCE), prefix):
            yield from rows

    def _run(self, work: Callable[[], Result], prefix: str = "") -> Result:
        """Runs a part of a statement on a thread, and interrupts it after the limit or after Ctrl-C.

        DuckDB does not look for signals within a statement. Its errors become a sentence.
        """
        running = run_on_daemon(work)
        try:
            return running.result(self.timeout_s)
        except TimeoutError as error:
            raise LabError(
                f"the question took longer than {self.timeout_s:g} s: ask about less time, or give --timeout more"
            ) from error
        except duckdb.OutOfMemoryException as error:
            raise LabError(
                f"{prefix}the question needs more than {MEMORY} of memory, or more room than the temporary folder "
                "(TMPDIR) has: ask about less time"
            ) from error
        except duckdb.Error as error:
            if failed := STORE_FAILED.search(_reason(error)):
                # Imported late: folders need no pyarrow.
                from mcpace.lab.tables.object_store import mask_secrets

                raise LabError(f"cannot read the table {failed[1]} of the store: {mask_secrets(failed[2])}") from error
            raise UsageProblem(f"{prefix}{_reason(error)}") from error
        except UnicodeDecodeError as error:
            raise UsageProblem(f"{prefix}a text of the tables is no UTF-8") from error
        finally:
            self._interrupt(running)

    def _interrupt(self, running: Future[Any]) -> None:
        """Ends a statement that still runs. One that waits for a store does not end, and is abandoned."""
        until = time.monotonic() + INTERRUPT_LIMIT_S
        # An interrupt that comes before the statement begins has no effect.
        while not running.done() and time.monotonic() < until:
            self.connection.interrupt()
            wait([running], INTERRUPT_EVERY_S)
        if not running.done():
            self.abandoned.append(running)
            is_interrupted = isinstance(sys.exception(), KeyboardInterrupt)
            end_without_waiting(INTERRUPTED if is_interrupted else EXIT_UNREACHABLE)


@contextmanager
def open_tables(
    place: str, timeout_s: float, needed: Collection[str] = tuple(TABLES), since: date | None = None
) -> Iterator[Tables]:
    """Opens the tables of a folder or a store that ``mcpace export --parquet`` wrote.

    ``needed`` and ``since`` matter for a store: files of other tables and of earlier days are not opened.

    Raises :class:`UsageProblem` where there are none, a file is damaged, or a file has a schema of the future, and
    :class:`LabError` where a store can't be read.
    """
    datasets: dict[str, Any] = {}
    files: dict[str, list[str]] = {table: [] for table in TABLES}
    if "://" in place:
        # Imported late: folders need no pyarrow.
        from mcpace.lab.tables.object_store import open_datasets

        datasets = open_datasets(place, timeout_s, needed, since)
    else:
        files = _find_files(place)
    with tempfile.TemporaryDirectory(prefix="mcpace-") as temporary, _connect(timeout_s) as tables:
        connection = tables.connection
        connection.execute(f"SET temp_directory = {_literal(temporary)}")
        connection.execute("SET TimeZone = 'UTC'")
        for table, paths in files.items():
            _check_files(connection, paths)
            if table in datasets:
                _register(connection, table, datasets[table])
            else:
                connection.execute(f"CREATE VIEW {table} AS {_view(connection, table, paths)}")
        allowed = {name for paths in files.values() for path in paths for name in (path, glob.escape(path))}
        connection.execute(f"SET allowed_paths = {_list(sorted(allowed))}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield tables


@contextmanager
def _connect(timeout_s: float) -> Iterator[Tables]:
    tables = Tables(duckdb.connect(config=CONFIGURATION), timeout_s)
    try:
        yield tables
    finally:
        if not tables.abandoned:
            tables.connection.close()


def _register(connection: duckdb.DuckDBPyConnection, table: str, dataset: Any) -> None:
    try:
        connection.register(table, dataset)
    except duckdb.Error as error:
        raise UsageProblem(f"the files of the table {table} can't be read: {_reason(error)}") from error


def _find_files(folder: str) -> dict[str, list[str]]:
    """The files of each table: ``TABLE/day=…/source=…/NAME.parquet``. Links within the folder are not followed."""
    root = Path(folder)
    if not root.is_dir():
        raise UsageProblem(f"{folder} is {'no folder' if root.exists() else 'not there'}: name a folder of tables")
    root = root.resolve()
    if "=" in str(root):
        raise UsageProblem(
            f"{root} has = in its path, which DuckDB takes for a column as in day=2026-11-26: move the tables"
        )
    found = {table: sorted(_table_files(root / table)) for table in TABLES}
    if not any(found.values()):
        raise UsageProblem(f"{folder} has no tables: mcpace export RECORDING --parquet {folder} writes them")
    unusable = next((path for paths in found.values() for path in paths if not is_unicode(path)), None)
    if unusable is not None:
        raise UsageProblem(f"cannot read {unusable!r}: the path of a table must be UTF-8 text")
    return found


def _table_files(folder: Path) -> Iterator[str]:
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in files_below(folder, (".parquet",)):
        match path.relative_to(folder).parts:
            case [day, source, name] if day.startswith("day=") and source.startswith("source=") and name[0] != ".":
                yield str(path)


def _check_files(connection: duckdb.DuckDBPyConnection, paths: list[str]) -> None:
    """Raises :class:`UsageProblem` for the first file that is damaged, is not mcpace's, or has a later schema."""
    try:
        versions = _versions(connection, paths)
    except duckdb.Error:
        versions = {}
        for path in paths:
            try:
                versions |= _versions(connection, [path])
            except duckdb.Error as error:
                _check_readable(path)
                raise UsageProblem(
                    f"{path} is no whole Parquet file: export its recording again, or delete the file"
                ) from error
    for path in paths:
        check_version(path, versions.get(path, ""))


def _check_readable(path: str) -> None:
    try:
        Path(path).open("rb").close()
    except OSError as error:
        raise UsageProblem(f"cannot read {path}: {error.strerror}") from error


def _versions(connection: duckdb.DuckDBPyConnection, paths: list[str]) -> dict[str, str]:
    if not paths:
        return {}
    sql = f"SELECT file_name, value FROM parquet_kv_metadata({_escaped(paths)}) WHERE key = ?::BLOB"
    return {
        path: bytes(value).decode(errors="replace") for path, value in connection.execute(sql, [VERSION_KEY]).fetchall()
    }


def _view(connection: duckdb.DuckDBPyConnection, table: str, paths: list[str]) -> str:
    """The view of a table. Columns that none of its files has are null."""
    columns = (*TABLES[table][1], *PARTITIONS)
    if not paths:
        return f"SELECT {', '.join(f'NULL::{SQL_TYPES[one.type]} AS {one.name}' for one in columns)} WHERE false"
    read = (
        f"read_parquet({_escaped(paths)}, hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
    )
    try:
        held = {str(row[0]) for row in connection.execute(f"DESCRIBE SELECT * FROM {read}").fetchall()}
    except duckdb.Error as error:
        raise UsageProblem(f"the files of the table {table} don't fit together: {_reason(error)}") from error
    missing = "".join(f", NULL::{SQL_TYPES[one.type]} AS {one.name}" for one in columns if one.name not in held)
    return f"SELECT *{missing} FROM {read}"


def _only_statement(sql: str) -> duckdb.Statement:
    if not is_unicode(sql):
        raise UsageProblem("--sql must be UTF-8 text")
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise UsageProblem(f"--sql: {_reason(error)}") from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageProblem(ONE_SELECT)
    return statements[0]


def _check_reads_only(tree: str) -> None:
    """Raises :class:`UsageProblem` for a statement with a part that writes or with a table function that is not in
    :data:`TABLE_FUNCTIONS`. ``tree``: the statement as DuckDB's ``json_serialize_sql`` describes it."""
    nodes: list[dict[str, Any]] = []

    def keep(node: dict[str, Any]) -> dict[str, Any]:
        nodes.append(node)
        return node

    try:
        whole = json.loads(tree, object_hook=keep)
    except RecursionError as error:
        raise UsageProblem("--sql: the statement is nested too deeply") from error
    kinds = {kind for node in nodes if isinstance(kind := node.get("type"), str) and kind.endswith("_NODE")}
    if whole["error"] or not kinds <= READING_NODES:
        raise UsageProblem(ONE_SELECT)
    for node in nodes:
        if node.get("type") == "TABLE_FUNCTION":
            name = node["function"]["function_name"]
            if name not in TABLE_FUNCTIONS:
                raise UsageProblem(
                    f"--sql cannot use the table function {name}: a statement reads {', '.join(TABLES)}, and may use "
                    f"{', '.join(TABLE_FUNCTIONS)}"
                )


def _escaped(paths: list[str]) -> str:
    return _list([glob.escape(path) for path in paths])


def _list(texts: list[str]) -> str:
    return f"[{', '.join(map(_literal, texts))}]"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _reason(error: duckdb.Error) -> str:
    """DuckDB's message without the excerpt of the statement, which has several lines."""
    message, _, _ = str(error).partition("\n\nLINE ")
    return " ".join(message.split())[:LONGEST_REASON]
