"""The rows of one recording, for all tables.

Design constraint: Exchanges and calls are read from the recording's own spans (OTLP), which are redacted, have texts of
bounded length, and are written line by line. The rows are yielded one at a time.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from mcpace import _core
from mcpace.lab.errors import UsageProblem
from mcpace.lab.tables.schema import PARTS, part_column
from mcpace.lab.targets import redact_url
from mcpace.report.model.run import Operation

MICROSECOND = 1_000
NANOS = 1_000_000_000
MOST_HEAD_BYTES = 256 * 1024
"""Bytes in which a recording's head and its first event begin. A first event that is longer counts up to there."""
LONGEST_TEXT = 1_024
MOST_ITEMS = 64
MOST_CONTEXT = 16_384
FAILED = 2
"""Status code of a failed span in OTLP."""
LAST_SECOND = 4_102_444_800
"""End of the year 2099. A later time is not one of a recording."""
LARGEST = 2**63 - 1

Row = tuple[str, str, dict[str, Any]]
"""Name of the table, day, and the values by column."""


@dataclass(frozen=True)
class Identity:
    """A recording's identity and its clock."""

    recording: str
    """Twelve hexadecimal digits."""
    server: str
    started_ns: int
    """Nanoseconds since 1970."""
    clock_ns: int | None
    """The recording's own clock at that time."""

    def wall_ns(self, at_ns: int) -> int:
        """Nanoseconds since 1970 of a stamp of the recording's clock; the start where the clock is not known."""
        return self.started_ns if self.clock_ns is None else self.started_ns + at_ns - self.clock_ns


def identify(path: Path) -> Identity:
    """Reads the identity from the recording's first two lines: its head, and the first event.

    A recording that grows keeps its identity. Raises :class:`UsageProblem` where the head can't be read.
    """
    import pyarrow

    try:
        with path.open("rb") as file:
            is_compressed = file.read(4) == b"\x28\xb5\x2f\xfd"
        with pyarrow.input_stream(str(path), compression="zstd" if is_compressed else None) as stream:
            beginning = bytes(stream.read(MOST_HEAD_BYTES))
        lines = io.BytesIO(beginning)
        line, first = lines.readline(), lines.readline()
        head = json.loads(line)
        started, clock = str(head.get("started", "")), head.get("started_ns")
        server = str(head.get("upstream", ""))[:LONGEST_TEXT]
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise UsageProblem(f"cannot read {path}: the head of the recording is damaged") from error
    try:
        begun = datetime.fromisoformat(started)
        started_ns = int((begun - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)) * MICROSECOND
    except (ValueError, TypeError, OverflowError):
        started_ns = 0
    if "://" in server:
        server = redact_url(server)
    digest = hashlib.sha256(line + first).hexdigest()[:12]
    return Identity(digest, server, started_ns, clock if isinstance(clock, int) else None)


def recording_rows(recording: _core.Recording, identity: Identity) -> Iterator[Row]:
    """All rows of a recording: calls, exchanges, findings, dependencies.

    Raises :class:`UsageProblem` where the recording has times that no instrument writes.
    """
    explained = recording.explained()
    common = {"recording": identity.recording, "server": identity.server}
    yield from _span_rows(recording, common, _open_starts(explained, identity))
    families = {cause["code"]: cause["family"] for cause in _core.catalogue()["causes"]}
    for finding in explained.findings:
        yield _finding_row(finding, families, common, identity)
    for sums in explained.tool_times:
        for dependency in sums["dependencies"]:
            row = {
                **common,
                "tool": _cut(sums["tool"]),
                "calls": sums["calls"],
                "kind": dependency["kind"],
                "name": _cut(dependency["name"]),
                "requests": dependency["requests"],
                "waiting_ns": dependency["time_ns"],
            }
            yield _dated("dependencies", identity.started_ns, row)


def _open_starts(explained: _core.Explained, identity: Identity) -> set[tuple[str, int]]:
    """Operation and start of each call that had not returned when the recording ended."""
    return {
        (operation, identity.wall_ns(window[0]))
        for operation in get_args(Operation)
        for call, _, ended, _ in explained.trials(operation)
        if ended == "open" and (window := explained.window(call)) is not None
    }


def _span_rows(recording: _core.Recording, common: dict[str, Any], open_starts: set[tuple[str, int]]) -> Iterator[Row]:
    call: _Call | None = None
    for span in _own_spans(recording):
        attributes = {one["key"]: _value(one["value"]) for one in span["attributes"]}
        start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        # The parts of a call follow it.
        if call is not None and span.get("parentSpanId") == call.span and span["name"] in PARTS:
            call.parts[span["name"]] = call.parts.get(span["name"], 0) + end - start
            continue
        if call is not None:
            yield call.row(common, open_starts)
            call = None
        if "mcpace.operation" in attributes:
            call = _Call(span, attributes, start, end, {})
        elif "http.request.body.size" in attributes:
            yield _exchange_row(span, attributes, start, end, common)
    if call is not None:
        yield call.row(common, open_starts)


def _own_spans(recording: _core.Recording) -> Iterator[dict[str, Any]]:
    """Spans of calls and exchanges, without those of the server's programs."""
    with tempfile.TemporaryDirectory(prefix="mcpace-") as folder:
        path = Path(folder, "spans.jsonl")
        recording.export("otlp", str(path))
        with path.open("rb") as lines:
            for line in lines:
                for resource in json.loads(line)["resourceSpans"]:
                    names = [one["value"].get("stringValue") for one in resource["resource"]["attributes"]]
                    if names[:1] == ["mcpace recording"]:
                        for scope in resource["scopeSpans"]:
                            yield from scope["spans"]


@dataclass
class _Call:
    """A span of an operation, with its parts."""

    of: dict[str, Any]
    attributes: dict[str, Any]
    start: int
    end: int
    parts: dict[str, int]

    @property
    def span(self) -> str:
        return str(self.of["spanId"])

    def row(self, common: dict[str, Any], open_starts: set[tuple[str, int]]) -> Row:
        operation, status = self.attributes["mcpace.operation"], self.of.get("status", {})
        duration = self.end - self.start
        outcome, message = "ok", None
        if (operation, self.start) in open_starts:
            outcome = "open"
        elif status.get("code") == FAILED:
            message = status.get("message")
            outcome, message = ("tool-error", None) if message == "tool_error" else ("failed", message)
        parts = {part_column(part): self.parts.get(part, 0) for part in PARTS[:-1]}
        row = {
            **common,
            "call": self.span,
            "duration_ns": duration,
            "operation": operation,
            "tool": self.attributes.get("gen_ai.tool.name"),
            "outcome": outcome,
            "message": message,
            **parts,
            part_column("unaccounted"): duration - sum(parts.values()),
        }
        return _dated("calls", self.start, row)


def _exchange_row(
    span: dict[str, Any], attributes: dict[str, Any], start: int, end: int, common: dict[str, Any]
) -> Row:
    row = {
        **common,
        "exchange": span["spanId"],
        "call": span.get("parentSpanId"),
        "duration_ns": end - start if end > start else None,
        "method": attributes.get("mcp.method.name"),
        "name": attributes.get("gen_ai.tool.name"),
        "http_method": attributes.get("http.request.method"),
        "path": attributes.get("url.path"),
        "status": attributes.get("http.response.status_code"),
        "error_code": attributes.get("rpc.response.status_code"),
        "failed": span.get("status", {}).get("code") == FAILED,
        "request_bytes": attributes["http.request.body.size"],
        "reply_bytes": attributes["http.response.body.size"],
        "connection": attributes.get("mcpace.connection"),
        **{
            f"{layer}_ns": attributes.get(f"mcpace.server.{layer}_ns") for layer in ("transport", "dispatch", "service")
        },
    }
    return _dated("exchanges", start, row)


def _finding_row(finding: dict[str, Any], families: dict[str, str], common: dict[str, Any], identity: Identity) -> Row:
    evidence = finding["evidence"]
    began = min((one["at_ns"] for one in evidence), default=None)
    context = json.dumps(_bounded(finding["context"]), ensure_ascii=False, separators=(",", ":"))
    total = finding["total"]
    row = {
        **common,
        "code": finding["code"],
        "family": families.get(finding["code"], ""),
        "severity": finding["severity"],
        "confidence": finding["confidence"]["level"],
        "reason": finding["confidence"].get("reason"),
        "operation": finding.get("operation"),
        "calls": finding["calls"],
        "time_ns": total["time_ns"],
        "requests": total["requests"],
        "bytes": total["bytes"],
        "evidence": len(evidence),
        "disproof": finding.get("disproof"),
        "context": context if len(context) <= MOST_CONTEXT else None,
    }
    return _dated("findings", identity.started_ns if began is None else identity.wall_ns(began), row)


def _dated(table: str, start_ns: int, row: dict[str, Any]) -> Row:
    seconds = start_ns // NANOS
    if not 0 <= seconds < LAST_SECOND or any(
        isinstance(value, int) and not -LARGEST <= value <= LARGEST for value in row.values()
    ):
        raise UsageProblem("the recording has times or sizes that no instrument writes")
    row["started"] = start_ns // MICROSECOND
    return table, _day(seconds // 86_400), row


def _day(days: int) -> str:
    return str(datetime.fromtimestamp(days * 86_400, UTC).date())


def _value(value: dict[str, Any]) -> str | int:
    return int(value["intValue"]) if "intValue" in value else str(value["stringValue"])


def _cut(text: str) -> str:
    return text[:LONGEST_TEXT]


def _bounded(value: Any) -> Any:
    """A finding's context with texts and lists of bounded length."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, list):
        return [_bounded(one) for one in value[:MOST_ITEMS]]
    if isinstance(value, dict):
        return {_cut(name): _bounded(one) for name, one in list(value.items())[:MOST_ITEMS]}
    return value
