"""``mcpace explain``: controlled experiments on a live target, or the findings of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpace.cli import options
from mcpace.cli.output import check_codes, deliver_run
from mcpace.cli.progress import show_progress
from mcpace.lab.defaults import EXPLAIN_BUDGET_S


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("explain")(explain)


def explain(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET|FILE|FOLDER]",
            help="URL, stdio:COMMAND, serve:COMMAND (a program that listens), MODULE:SERVER, FILE.py:SERVER, "
            "profile:NAME, or a name from --config; a saved recording, or a folder of recordings.",
            show_default=False,
        ),
    ] = None,
    tool: options.ToolName = None,
    args: options.ToolArguments = None,
    budget: Annotated[
        float, typer.Option(parser=options.parse_limit, metavar="TIME", help="Time for all experiments together.")
    ] = f"{EXPLAIN_BUDGET_S:.0f}s",  # type: ignore[assignment]  # read by its parser
    revision: Annotated[
        str | None, typer.Option(help="Protocol revision of the base case, e.g. 2025-06-18. [default: negotiated]")
    ] = None,
    auth: options.Authentication = None,
    header: options.Header = [],  # noqa: B006 - typer copies it
    config: options.Config = None,
    cacert: options.Cacert = None,
    hold: options.Hold = options.HOLD,
    fault: options.Fault = [],  # noqa: B006 - typer copies it
    inside: options.Inside = False,
    pid: options.Pid = None,
    python: options.Python = None,
    timeout: options.Timeout = options.TIMEOUT,
    fail_on: options.FailOn = [],  # noqa: B006 - typer copies it
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
    behind: Annotated[
        list[Path],
        typer.Option("--behind", metavar="FILE", help="A recording made behind a gateway; FILE was made before it."),
    ] = [],  # noqa: B006 - typer copies it
    beside: Annotated[
        list[Path],
        typer.Option(
            "--beside", metavar="FILE", help="A recording of the same program with more tools, or fewer, than in FILE."
        ),
    ] = [],  # noqa: B006 - typer copies it
    spans: Annotated[
        Path | None,
        typer.Option(
            "--spans",
            metavar="FILE",
            help="Spans of the server's programs, in OTLP JSON or Jaeger JSON: joined to the recording, or alone.",
        ),
    ] = None,
) -> None:
    """Change one thing at a time on a live target and measure how long a call then takes: connection, JSON or SSE,
    session, …

    Only a tool that the server marks read-only, or the one named with --tool, is called. For a saved recording,
    show where the time of its calls went, and the causes that it proves. For a folder, explain all its recordings in
    parallel. With --spans, show where the time inside the tools went.
    """
    from mcpace.cli.file_kind import recording_problem
    from mcpace.lab import journal, targets
    from mcpace.lab.errors import UsageProblem
    from mcpace.lab.explain import factors as lab
    from mcpace.lab.explain import folder_run, recording_run
    from mcpace.lab.headers import parse_headers
    from mcpace.lab.load.settings import LoadSettings
    from mcpace.lab.recording_files import ENDINGS

    check_codes(fail_on)
    if target is None:
        if spans is None:
            raise UsageProblem("name a target, a saved recording, or a file of spans with --spans")
        for option, files in (("--behind", behind), ("--beside", beside)):
            if files:
                raise UsageProblem(f"{option} belongs to a saved recording, and none is named")
        deliver_run(recording_run.explain_spans(spans), as_json=as_json, out=out, page=html, fail_on=fail_on)
        return
    if config is None and options.is_folder(target):
        others = {"--behind": behind, "--beside": beside, "--spans": spans, "--inside": inside, "--pid": pid}
        for option, is_given in others.items():
            if is_given:
                raise UsageProblem(f"{option} belongs to one recording or a live target; {target} is a folder")
        with show_progress() as display:
            run = folder_run.explain_folder(Path(target), display)
        deliver_run(run, as_json=as_json, out=out, page=html, fail_on=fail_on)
        return
    if options.is_file(target) or target.endswith(ENDINGS):
        if inside or pid is not None:
            raise UsageProblem("--inside and --pid look into a live server, and TARGET is a recording")
        try:
            run = recording_run.explain_recording(Path(target), behind, beside, spans)
        except UsageProblem as problem:
            raise recording_problem(problem, [Path(target), *behind, *beside]) from problem
        deliver_run(run, as_json=as_json, out=out, page=html, fail_on=fail_on)
        return
    for option, files in (("--behind", behind), ("--beside", beside), ("--spans", [spans] if spans else [])):
        if files:
            raise UsageProblem(f"{option} belongs to a saved recording; TARGET is not a recording")
    checked_revision = options.checked_revision(revision)
    place = targets.parse_target(
        target,
        config=config,
        auth=options.checked_authentication(auth),
        tool=options.chosen_tool(tool, args),
        headers=parse_headers(header),
        python=options.interpreter_path(python),
    )
    options.check_inside(inside, pid, place)
    # A profile has its own tool, which may be called.
    call = place.tool
    settings = LoadSettings(
        vus=1,
        mix=((call.name, 1.0),) if call else (),
        arguments={call.name: call.arguments} if call and (args is not None or place.profile) else {},
        headers=place.headers,
        revision=checked_revision,
        timeout_s=timeout,
        extra_root=cacert,
        hold_s=hold,
        faults=options.checked_faults(fault, [place]),
    )
    with show_progress() as display, journal.record_progress(display, out, "explain", place.name) as progress:
        run = lab.run(lab.Question(place, settings, budget, inside, pid), progress)
    deliver_run(run, as_json=as_json, out=out, page=html, fail_on=fail_on)
