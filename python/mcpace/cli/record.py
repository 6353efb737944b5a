"""``mcpace record``: runs the recorder between any client and any server."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcpace import _core
from mcpace.cli import options
from mcpace.cli.atomic_write import PRIVATE, is_other, make_private, make_spare, replace_atomically
from mcpace.cli.notes import inform, is_quiet, note
from mcpace.cli.output import INTERRUPTED
from mcpace.lab import targets
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.headers import parse_headers
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.processes.process_samples import ProcessSamples, read_sample
from mcpace.report.words.quantities import count

if TYPE_CHECKING:
    from mcpace.cli.record_metrics import RecorderMetrics


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("record")(record)


def record(
    upstream: Annotated[str, typer.Option(metavar="URL|stdio:COMMAND", help="The real server.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The recording. [default: mcpace-TIME.jsonl.zst]")
    ] = None,
    port: options.Port = 0,
    body_limit: Annotated[int, typer.Option(help="Bytes of each body to record; 0 for none.", min=0)] = 65_536,
    header: options.Header = [],  # noqa: B006 - typer copies it
    cacert: options.Cacert = None,
    watch: Annotated[
        int | None,
        typer.Option(
            "--watch",
            metavar="PID",
            help="The server's process: sample its memory, and its processor time at each exchange. Over stdio this is "
            "always done.",
            min=1,
        ),
    ] = None,
    traceparent: Annotated[
        bool,
        typer.Option(
            "--traceparent",
            help="Begin a trace (W3C traceparent header) with each request that has none, so that spans of the server "
            "lead to its calls; HTTP only.",
        ),
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="[HOST:]PORT",
            help="Serve metrics for Prometheus at http://HOST:PORT/metrics (mcpace[otel]), on loopback unless HOST is "
            "another address; HTTP only. The port asks for no token, and its metrics show the names of tools.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Name causes of lost time on stderr as soon as the recording proves them.")
    ] = False,
) -> None:
    """Record the traffic between a client and a server, over HTTP or stdio, until Ctrl-C or the server's end.

    For stdio, give this command to your client in the place of the server's own. At the end, it prints the
    causes of lost time that the recording proves.
    """
    if watch is not None and (upstream.startswith("stdio:") or read_sample(watch) is None):
        why = "over stdio" if upstream.startswith("stdio:") else f"of process {watch}: there is none"
        raise UsageProblem(f"--watch can't take samples {why}")
    added = parse_headers(header)
    if upstream.startswith("stdio:"):
        if added:
            raise UsageProblem("--header needs an upstream with a URL: a process gets no HTTP requests")
        if traceparent:
            raise UsageProblem("--traceparent needs an upstream with a URL: the lines of stdio are passed on unchanged")
        if metrics is not None:
            raise UsageProblem("--metrics needs an upstream with a URL")
        command = targets.parse_target(upstream).command
        file = _create_file(out)
        # The server is the only child of this process.
        with ProcessSamples(children_are="server") as samples, _explain_live(file, explain):
            try:
                code = _core.record_stdio(list(command), str(file), body_limit=body_limit)
            except KeyboardInterrupt:  # Many hosts end their servers with a signal. The recording is complete.
                code = INTERRUPTED
        if samples.has_processes:
            _add_samples(samples, file)
        _inform_of_causes(file)
        raise typer.Exit(code)
    if not upstream.startswith(("http://", "https://")):
        raise UsageProblem(f"--upstream takes a URL or stdio:COMMAND, not {upstream!r}")
    targets.parse_target(upstream)
    certificate = targets.read_certificate(cacert) if cacert is not None else None
    served = None if metrics is None else _serve_metrics(metrics)
    file = _create_file(out)
    try:
        recorder = _core.Recorder(
            upstream,
            file=str(file),
            keep=False,
            port=port,
            body_limit=body_limit,
            extra_root=certificate,
            headers=list(added),
            watch=watch,
            traceparent=traceparent,
            duration_bounds=None if served is None else served.DURATION_BOUNDS,
        )
    except _core.EnvironmentProblem as problem:
        raise LabError(f"cannot record to {file}: {problem}") from problem
    samples = ProcessSamples()
    try:
        with contextlib.suppress(KeyboardInterrupt), samples, _explain_live(file, explain):
            if watch is not None:
                samples.watch_process("server", watch)
            told = ""
            if served is not None:
                served.add(recorder, file)
                told = f"metrics at {served.url}; "
            recorded = targets.redact_url(upstream)
            note(f"point your client at {recorder.url} (records {recorded} to {file}; {told}Ctrl-C ends it)")
            recorder.wait()
    finally:
        recorder.stop()
    if recorder.failed:
        raise LabError(f"the recording in {file} is incomplete: writing failed (is the disk full?)")
    if watch is not None:
        _add_samples(samples, file)
    inform(f"recorded {count(recorder.exchanges, 'exchange')} in {file}")
    if recorder.exchanges:
        _inform_of_causes(file)


def _serve_metrics(place: str) -> RecorderMetrics:
    """Opens the port of the metrics. Raises :class:`LabError` where that can't be done."""
    try:
        from mcpace.cli.record_metrics import RecorderMetrics
    except ModuleNotFoundError as error:
        raise LabError(f"--metrics needs {error.name}, which is not installed: pip install 'mcpace[otel]'") from error
    return RecorderMetrics(place)


def _explain_live(file: Path, explain: bool) -> contextlib.AbstractContextManager[object]:
    """Names causes while the recording goes on, where that is asked for."""
    if not explain or is_quiet():
        return contextlib.nullcontext()
    if is_other(file):
        raise UsageProblem(f"--explain can't read the recording in {file}, which is a pipe or a device")
    from mcpace.cli.record_explain import LiveExplanation

    return LiveExplanation(file)


def _inform_of_causes(file: Path) -> None:
    """Prints the verdict on the recording. Another Ctrl-C ends the explanation, not the recording."""
    if is_quiet() or is_other(file):
        return  # a recording in a pipe or a device can't be read again
    # Imported late: what explains a recording takes long to import, and a client waits for the recorder.
    from mcpace.lab.explain import recording_run
    from mcpace.report.verdict import sentences

    try:
        run = recording_run.explain_recording(file)
    except UsageProblem as problem:
        note(f"the recording can't be explained: {problem}")
    except KeyboardInterrupt:
        note(f"not explained; see mcpace explain {file}")
    else:
        for sentence in sentences(run):
            inform(sentence)
        inform(f"evidence and advice: mcpace explain {file}")


def _add_samples(samples: ProcessSamples, file: Path) -> None:
    """Adds the samples to the recording, after the recorder has written the whole file."""
    if is_other(file):
        return  # a recording in a pipe or a device can't be changed
    whole = _core.Recording.load(str(file))
    samples.add_to(whole)
    try:
        # The file is replaced atomically, so that a full disk doesn't destroy the recording.
        with defer_interrupt(), replace_atomically(file, PRIVATE) as temporary:
            whole.save(str(temporary))
    except OSError as error:
        raise LabError(f"cannot add what was sampled to {file}: {error.strerror}") from error


def _create_file(out: Path | None) -> Path:
    """Creates the recording's empty file.

    Raises :class:`LabError` where the file can't be written.
    """
    file = out or Path(f"mcpace-{time.strftime('%Y%m%d-%H%M%S')}.jsonl.zst")
    try:
        if out is None:
            return make_spare(file)
        make_private(file)
    except OSError as error:
        raise LabError(f"cannot write the recording to {file}: {error.strerror}") from error
    return file
