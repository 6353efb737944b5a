"""``mcpace export``: converts recordings to formats of other tools."""

from __future__ import annotations

import http.client
import json
import tempfile
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from mcpace import _core
from mcpace.cli.atomic_write import PRIVATE, is_other, replace_atomically
from mcpace.cli.file_kind import load_recording
from mcpace.cli.notes import inform, note
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.recording_files import find_recordings, name_file
from mcpace.lab.targets import redact_url
from mcpace.report.words.quantities import clean, count

LIMIT_S = 30.0
"""Time limit of each request to a collector."""
LONGEST_WORDS = 200
LONGEST_REPLY = 65_536


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("export")(export)


def export(
    recordings: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORDING...",
            help="A recording (.jsonl.zst), from `record`; for --parquet also several, or a folder.",
        ),
    ],
    har: Annotated[
        Path | None, typer.Option(metavar="FILE", help="HAR 1.2, for a browser's network panel; HTTP only.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Chrome's trace format, for Perfetto or chrome://tracing.")
    ] = None,
    otlp: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="OTLP spans: JSON lines, or a collector's http://HOST:4318/v1/traces."),
    ] = None,
    parquet: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|URL", help="Tables in Parquet files below a folder or in a store, s3://BUCKET/FOLDER."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the server in the tables. [default: made of its address]"),
    ] = None,
) -> None:
    """Write a recording as HAR, as a Chrome trace, as OTLP spans or as tables in Parquet files. Redacted values stay
    redacted.

    --parquet takes several recordings and folders of recordings. A second export of a recording replaces the first.
    """
    if source is not None and parquet is None:
        raise UsageProblem("--source belongs to --parquet")
    if har is None and trace is None and otlp is None and parquet is None:
        raise UsageProblem("say what to export: --har FILE, --trace FILE, --otlp FILE|URL or --parquet FOLDER")
    if parquet is not None:
        _write_tables(recordings, parquet, source)
    if har is None and trace is None and otlp is None:
        return
    if len(recordings) > 1:
        raise UsageProblem("--har, --trace and --otlp take one recording; only --parquet takes several")
    loaded = load_recording(recordings[0])
    if loaded.partial:
        note("the recording's end is missing; what there is, is exported")
    for format_, place in (("har", har), ("trace", trace)):
        if place is not None:
            _write_export(loaded, format_, place)
    if otlp is not None and otlp.startswith(("http://", "https://")):
        _send_spans(loaded, otlp)
    elif otlp is not None:
        _write_export(loaded, "otlp", Path(otlp))


def _write_tables(paths: list[Path], place: str, source: str | None) -> None:
    """Writes the tables of all recordings. One of several that is broken is named and left out."""
    # Imported late: it needs an extra.
    from mcpace.lab.tables.write import open_store, write_recording

    store, files = open_store(place), find_recordings(paths)
    rows: Counter[str] = Counter()
    done = 0
    for path in files:
        try:
            loaded = load_recording(path)
            with defer_interrupt():
                rows.update(write_recording(store, loaded, path, source))
        except UsageProblem as problem:
            if len(files) == 1:
                raise UsageProblem(name_file(problem, path)) from problem
            note(f"left out: {name_file(problem, path)}")
            continue
        done += 1
        if loaded.partial:
            note(f"{clean(path)}: the recording's end is missing; what there is, is exported")
        del loaded  # the next recording needs the memory
    if not done:
        raise UsageProblem("none of the recordings could be read")
    told = ", ".join(f"{table} {number:,}" for table, number in rows.items())
    inform(
        f"exported {count(done, 'recording')} to {clean(redact_url(place) if '://' in place else place)}; rows: {told}"
    )


def _write_export(recording: _core.Recording, format_: str, path: Path) -> None:
    """Writes an export atomically. The file is readable by its owner only."""
    if is_other(path):
        recording.export(format_, str(path))
        return
    try:
        with defer_interrupt(), replace_atomically(path, PRIVATE) as temporary:
            recording.export(format_, str(temporary))
    except OSError as error:
        raise LabError(f"cannot write {path}: {error.strerror}") from error
    inform(f"exported to {path}")


def _send_spans(recording: _core.Recording, url: str) -> None:
    """Posts the spans line by line. Raises :class:`LabError` where the collector refuses all or some of them."""
    check_url(url, "http://127.0.0.1:4318/v1/traces")
    place = redact_url(url)
    if "@" in urlsplit(url).netloc:
        raise UsageProblem(f"--otlp {place} has a user or a password in its URL, which are not sent: leave them out")
    # The user named this collector, not the target of a redirect.
    opener = urllib.request.build_opener(_NoRedirects)
    sent = refused = 0
    why = ""
    with tempfile.NamedTemporaryFile(prefix="mcpace-", suffix=".jsonl") as file:
        recording.export("otlp", file.name)
        for line in file:
            more, words = _refused_spans(_post_line(opener, url, place, line, sent))
            refused, why, sent = refused + more, words or why, sent + 1
    if refused:
        raise LabError(f"{place} refused {refused} of the spans{f': {why}' if why else ''}")
    inform(f"sent {count(sent, 'batch', 'batches')} to {place}{f', which says: {why}' if why else ''}")


def check_url(url: str, example: str) -> None:
    """Raises :class:`UsageProblem` where ``url`` can't be the URL of a collector."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # half a bracket, a port that is no number
        is_valid = False
    if not is_valid:
        raise UsageProblem(f"--otlp {clean(url, LONGEST_WORDS)!r} is not a collector's URL: write {example}")


def _post_line(opener: urllib.request.OpenerDirector, url: str, place: str, line: bytes, sent: int) -> bytes:
    """Posts one line. ``place``: the URL for messages, without possible secrets."""
    request = urllib.request.Request(url, line, {"content-type": "application/json"})
    try:
        with opener.open(request, timeout=LIMIT_S) as reply:
            return bytes(reply.read(LONGEST_REPLY))
    except urllib.error.HTTPError as error:
        raise LabError(f"{place} {_sent_before(sent)}answered HTTP {error.code}: {_error_text(error)}") from error
    except http.client.BadStatusLine as error:
        did = "hung up" if isinstance(error, http.client.RemoteDisconnected) else "answered what is no HTTP/1.1"
        hint = "if this is its gRPC port, name the one for OTLP over HTTP, which is 4318 unless it was changed"
        raise LabError(f"{place} {_sent_before(sent)}{did}: {hint}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = getattr(error, "reason", None) or error
        reason = clean(getattr(cause, "strerror", None) or str(cause), LONGEST_WORDS)
        raise LabError(f"{place} {_sent_before(sent)}could not be reached: {reason}") from error


def _sent_before(sent: int) -> str:
    return f"took {count(sent, 'batch', 'batches')}, then " if sent else ""


def _error_text(error: urllib.error.HTTPError) -> str:
    try:
        return clean(error.read(LONGEST_WORDS).decode(errors="replace"), LONGEST_WORDS)
    except (OSError, http.client.HTTPException):
        return "(the rest didn't come)"


def _refused_spans(reply: bytes) -> tuple[int, str]:
    """Number of spans that the collector refused in a reply with status 200, and why (OTLP's ``partialSuccess``)."""
    try:
        partial_success = json.loads(reply)["partialSuccess"]
        refused = int(partial_success.get("rejectedSpans") or 0)
        return max(refused, 0), clean(str(partial_success.get("errorMessage") or ""), LONGEST_WORDS)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return 0, ""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None
