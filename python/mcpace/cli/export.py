"""``mcpace export``: converts recordings to formats of other tools."""

from __future__ import annotations

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

LONGEST_WORDS = 200


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
        # Imported late: few exports need an HTTP client.
        from mcpace.cli.collector import send_spans

        send_spans(loaded, otlp)
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


def check_url(url: str, example: str) -> None:
    """Raises :class:`UsageProblem` where ``url`` can't be the URL of a collector."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # half a bracket, a port that is no number
        is_valid = False
    if not is_valid:
        raise UsageProblem(f"--otlp {clean(url, LONGEST_WORDS)!r} is not a collector's URL: write {example}")
