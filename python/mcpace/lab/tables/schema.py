"""The schema of the tables: names, types, and meanings of all columns.

Design constraint: docs/parquet.md is generated from this file, and nothing here needs pyarrow. A change of the meaning
or the type of a column, and the removal of a column, need a new :data:`VERSION`. A new column does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mcpace.lab.errors import UsageProblem

if TYPE_CHECKING:
    import pyarrow

VERSION = 1
"""Version of the schema. A reader refuses files of a higher version."""
VERSION_KEY, TABLE_KEY, RECORDING_KEY = "mcpace.schema", "mcpace.table", "mcpace.recording"
"""Keys of a file's metadata: version of the schema, name of the table, and identity of the recording."""
WRITER_KEY = "mcpace.version"
"""Key of a file's metadata: version of mcpace that wrote the file."""

Type = Literal["text", "whole", "flag", "time"]
ARROW_TYPES = {"text": "string", "whole": "int64", "flag": "bool", "time": "timestamp[us, tz=UTC]"}
SQL_TYPES = {"text": "VARCHAR", "whole": "BIGINT", "flag": "BOOLEAN", "time": "TIMESTAMPTZ"}

PARTS = ("client.send", "connect", "request", "server", "response", "client.receive", "unaccounted")
"""Parts of a ledger, in the order of a call."""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    type: Type
    meaning: str
    is_nullable: bool = False


PARTITIONS = (
    Column("day", "text", "Day (UTC) at which the row's exchange, call or finding began, `2026-11-26`."),
    Column("source", "text", "Name of the server: that of a host's configuration, `--source`, or made of its address."),
)
"""Columns that are in the names of the folders, and not in the files."""

_COMMON = (
    Column("recording", "text", "Identity of the recording. It stays when the file is renamed or grows."),
    Column("server", "text", "URL or program of the server, as recorded."),
)
_STARTED = Column("started", "time", "Start, on the wall clock of the recording machine.")


def _part_column(part: str) -> Column:
    return Column(part_column(part), "whole", f"Nanoseconds of the ledger's part `{part}`.")


def part_column(part: str) -> str:
    """Name of the column of a ledger's part: ``client_send_ns``."""
    return f"{part.replace('.', '_')}_ns"


TABLES: dict[str, tuple[str, tuple[Column, ...]]] = {
    "exchanges": (
        "Each request with its reply, over HTTP or stdio.",
        (
            *_COMMON,
            Column("exchange", "text", "Identity of the exchange: the id of its span in `--otlp`."),
            Column("call", "text", "The call that made the exchange; null for a foreign client.", True),
            _STARTED,
            Column("duration_ns", "whole", "Nanoseconds up to the reply's end; null where no reply was seen.", True),
            Column("method", "text", "Method of MCP, `tools/call`; null for what is no JSON-RPC.", True),
            Column("name", "text", "Name of the tool, the prompt or the resource; null without one.", True),
            Column("http_method", "text", "Method of HTTP; null over stdio.", True),
            Column("path", "text", "Path of HTTP; null over stdio.", True),
            Column("status", "whole", "Status of HTTP; null over stdio or without a reply.", True),
            Column("error_code", "text", "Code of a JSON-RPC error; null without one.", True),
            Column("failed", "flag", "Whether the reply is an error of HTTP, of JSON-RPC or of the tool."),
            Column("request_bytes", "whole", "Bytes of the request's body."),
            Column("reply_bytes", "whole", "Bytes of the reply's body."),
            Column("connection", "whole", "Number of the connection within the recording; null over stdio.", True),
            Column(
                "transport_ns", "whole", "Nanoseconds in the server's transport, where the server reports it.", True
            ),
            Column("dispatch_ns", "whole", "Nanoseconds in the server's dispatch, where the server reports it.", True),
            Column("service_ns", "whole", "Nanoseconds in the author's code, where the server reports it.", True),
        ),
    ),
    "calls": (
        "Each operation of a client that mcpace ran, with its ledger. The parts add up to the duration exactly.",
        (
            *_COMMON,
            Column("call", "text", "Identity of the call: the id of its span in `--otlp`."),
            _STARTED,
            Column("duration_ns", "whole", "Nanoseconds from start to return."),
            Column("operation", "text", "`connect`, `list`, `call` or `disconnect`."),
            Column("tool", "text", "Name of the tool; null for other operations.", True),
            Column("outcome", "text", "`ok`, `tool-error`, `failed`, or `open`: the recording ended before the call."),
            Column("message", "text", "Words of the failure; null without one.", True),
            *(_part_column(part) for part in PARTS),
        ),
    ),
    "findings": (
        "Each cause that the recording proves, with its cost. docs/findings.md describes the codes.",
        (
            *_COMMON,
            Column("code", "text", "Code of the finding."),
            Column("family", "text", "Family of the finding."),
            _STARTED,
            Column("severity", "text", "`low`, `medium` or `high`."),
            Column("confidence", "text", "`low`, `medium` or `high`."),
            Column("reason", "text", "Reason for the confidence; null without one.", True),
            Column("operation", "text", "Operation that pays for it; null outside of operations.", True),
            Column("calls", "whole", "Calls that pay for it."),
            Column("time_ns", "whole", "Nanoseconds that it cost."),
            Column("requests", "whole", "Requests that it cost."),
            Column("bytes", "whole", "Bytes that it cost."),
            Column("evidence", "whole", "Number of events that prove it."),
            Column("disproof", "text", "Experiment that would disprove it; null without one.", True),
            Column("context", "text", "Its context as JSON, by the schema of its code in docs/run.schema.json.", True),
        ),
    ),
    "dependencies": (
        "Waits of each tool for each dependency, where mcpace looked into the server (`--inside`).",
        (
            *_COMMON,
            _STARTED,
            Column("tool", "text", "Name of the tool."),
            Column("calls", "whole", "Calls of the tool that can be told apart."),
            Column("kind", "text", "Kind of the dependency."),
            Column("name", "text", "Name of the dependency, `api.example.org:8080`."),
            Column("requests", "whole", "Requests to it; 0 where only the connection or the program is known."),
            Column("waiting_ns", "whole", "Nanoseconds in which the calls waited for it and did nothing else."),
        ),
    ),
}
"""Each table: its meaning and its columns."""


def arrow_schema(table: str, recording: str, writer: str) -> pyarrow.Schema:
    """Schema of a table's files. ``recording``: identity of the recording. ``writer``: version of mcpace."""
    import pyarrow

    types = {
        "text": pyarrow.string(),
        "whole": pyarrow.int64(),
        "flag": pyarrow.bool_(),
        "time": pyarrow.timestamp("us", "UTC"),
    }
    fields = [
        pyarrow.field(column.name, types[column.type], column.is_nullable, {"meaning": column.meaning})
        for column in TABLES[table][1]
    ]
    return pyarrow.schema(
        fields, {VERSION_KEY: str(VERSION), TABLE_KEY: table, RECORDING_KEY: recording, WRITER_KEY: writer}
    )


def check_version(path: str, version: str) -> None:
    """Raises :class:`UsageProblem` for a file that is not mcpace's, or has a later schema. ``version``: the value of
    :data:`VERSION_KEY` in its metadata."""
    if not version.isdecimal():
        raise UsageProblem(f"{path} was not written by mcpace export --parquet: move it out of the folder")
    if int(version[:9]) > VERSION:
        raise UsageProblem(
            f"{path} has version {version[:9]} of the schema, and this mcpace reads up to {VERSION}: update mcpace"
        )


def document() -> str:
    """The tables of docs/parquet.md, in Markdown."""
    lines = [f"Version of the schema: {VERSION}.", ""]
    parts: list[tuple[str, str, tuple[Column, ...]]] = [("In the names of the folders, for all tables", "", PARTITIONS)]
    parts += [(f"`{name}`", meaning, columns) for name, (meaning, columns) in TABLES.items()]
    for title, meaning, columns in parts:
        lines += [f"### {title}", "", *([meaning, ""] if meaning else [])]
        lines += ["| column | type | may be null | meaning |", "|---|---|---|---|"]
        for column in columns:
            null = "yes" if column.is_nullable else ""
            lines.append(f"| `{column.name}` | {ARROW_TYPES[column.type]} | {null} | {column.meaning} |")
        lines.append("")
    return "\n".join(lines).rstrip()
