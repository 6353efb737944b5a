"""``mcpace measure``: connect, list and call with mcpace's own instrumented client."""

from __future__ import annotations

from typing import Annotated

import typer

from mcpace.cli import options
from mcpace.cli.output import check_codes, deliver_run
from mcpace.cli.progress import show_progress


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("measure")(measure)


def measure(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="URL, stdio:COMMAND, serve:COMMAND (a program that listens), MODULE:SERVER, FILE.py:SERVER, "
            "profile:NAME, or a name from --config.",
        ),
    ],
    tool: options.ToolName = None,
    args: options.ToolArguments = None,
    revision: options.Revision = None,
    auth: options.Authentication = None,
    trials: options.Trials = options.TRIALS,
    calls: options.Calls = options.CALLS,
    hold: options.Hold = options.HOLD,
    fault: options.Fault = [],  # noqa: B006 - typer copies it
    header: options.Header = [],  # noqa: B006 - typer copies it
    config: options.Config = None,
    cacert: options.Cacert = None,
    server_timing: Annotated[
        bool,
        typer.Option(help="Ask the server how long its layers took. Servers without support ignore the question."),
    ] = True,
    inside: options.Inside = False,
    pid: options.Pid = None,
    python: options.Python = None,
    timeout: options.Timeout = options.TIMEOUT,
    recordings: options.Recordings = None,
    fail_on: options.FailOn = [],  # noqa: B006 - typer copies it
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Connect to a server, list its tools and call one; split the time by layer and name causes.

    Without --tool only a tool that the server marks read-only is called. Exit code 3 if every call of the named
    tool fails.
    """
    from mcpace.lab import journal, targets
    from mcpace.lab.clients import measure as lab
    from mcpace.lab.clients.plan import Settings
    from mcpace.lab.headers import parse_headers

    checked_revision = options.checked_revision(revision)
    check_codes(fail_on)
    place = targets.parse_target(
        target,
        config=config,
        auth=options.checked_authentication(auth),
        tool=options.chosen_tool(tool, args),
        headers=parse_headers(header),
        python=options.interpreter_path(python),
    )
    options.check_inside(inside, pid, place)
    faults = options.checked_faults(fault, [place])
    may_run_fewer = options.is_default(context, "trials")
    settings = Settings(trials, hold, faults, timeout, recordings, calls, may_run_fewer)
    with show_progress() as display, journal.record_progress(display, out, "measure", place.name) as progress:
        run = lab.run(
            place,
            settings,
            progress,
            revision=checked_revision,
            server_timing=server_timing,
            extra_root=cacert,
            inside=inside,
            pid=pid,
        )
    deliver_run(run, as_json=as_json, out=out, page=html, fail_on=fail_on, tool=tool)
