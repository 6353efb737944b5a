"""``mcpace export``: a recording for other tools."""

from __future__ import annotations

import os
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from mcpace import _core
from mcpace.cli.notes import note
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.interruption import held
from mcpace.report.quantities import clean

LIMIT_S = 30.0
"""Of each request to a collector."""
LONGEST_WORDS = 200


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("export")(export)


def export(
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="A recording (.jsonl.zst), from `record`.")],
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
) -> None:
    """Write a recording as HAR, as a Chrome trace or as OTLP spans. What was redacted stays so."""
    if har is None and trace is None and otlp is None:
        raise UsageProblem("say what to export: --har FILE, --trace FILE or --otlp FILE|URL")
    loaded = _core.Recording.load(str(recording))
    if loaded.partial:
        note("the recording's end is missing; what there is, is exported")
    for format_, place in (("har", har), ("trace", trace)):
        if place is not None:
            _write(loaded, format_, place)
    if otlp is not None and otlp.startswith(("http://", "https://")):
        _send(loaded, otlp)
    elif otlp is not None:
        _write(loaded, "otlp", Path(otlp))


def _write(recording: _core.Recording, format_: str, path: Path) -> None:
    """Whole or not at all."""
    if path.exists() and not path.is_file():
        recording.export(format_, str(path))
        return
    with held(), _beside(path) as temporary:
        recording.export(format_, temporary)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    note(f"exported to {path}")


class _beside:
    """A temporary file in the folder of ``path``, gone in the end unless it was moved."""

    def __init__(self, path: Path) -> None:
        try:
            handle, self._name = tempfile.mkstemp(dir=path.resolve().parent, prefix=".mcpace-")
        except OSError as error:
            raise LabError(f"cannot write {path}: {error.strerror}") from error
        os.close(handle)

    def __enter__(self) -> str:
        return self._name

    def __exit__(self, *exception: object) -> None:
        Path(self._name).unlink(missing_ok=True)


def _send(recording: _core.Recording, url: str) -> None:
    """Posts a line at a time; a collector that takes none of it, or only some, is told."""
    if not urlsplit(url).netloc:
        raise UsageProblem(f"--otlp {url!r} names no host: write http://127.0.0.1:4318/v1/traces")
    # A collector is named by the user; what it redirects to is not.
    opener = urllib.request.build_opener(_NoRedirects)
    sent = 0
    with tempfile.NamedTemporaryFile(prefix="mcpace-", suffix=".jsonl") as file:
        recording.export("otlp", file.name)
        for line in file:
            request = urllib.request.Request(url, line, {"content-type": "application/json"})
            try:
                with opener.open(request, timeout=LIMIT_S) as reply:
                    reply.read(65_536)
            except urllib.error.HTTPError as error:
                words = clean(error.read(LONGEST_WORDS).decode(errors="replace"))
                raise LabError(f"{url} took {sent} batches, then answered HTTP {error.code}: {words}") from error
            except OSError as error:
                reason = getattr(error, "reason", None) or error
                raise LabError(f"{url} took {sent} batches, then could not be reached: {reason}") from error
            sent += 1
    note(f"sent {sent} batch{'' if sent == 1 else 'es'} to {url}")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None
