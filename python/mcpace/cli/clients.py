"""``mcpace clients``: real SDK releases as clients, through the recorder."""

from __future__ import annotations

from typing import Annotated

import typer

from mcpace.cli import options
from mcpace.cli.output import check_codes, deliver_run
from mcpace.cli.progress import show_progress


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("clients")(clients)


def clients(
    subjects: Annotated[
        list[str], typer.Argument(metavar="SDK@VERSION[:MODE]...", help="Releases, e.g. python@1.12.1.")
    ],
    target: Annotated[
        list[str],
        typer.Option(
            "--target",
            metavar="TARGET",
            help="URL, stdio:COMMAND, serve:COMMAND, MODULE:SERVER, FILE.py:SERVER, profile:NAME, or a name from "
            "--config. Repeatable.",
        ),
    ],
    trials: options.Trials = options.TRIALS,
    calls: options.Calls = options.CALLS,
    hold: options.Hold = options.HOLD,
    fault: options.Fault = [],  # noqa: B006 - typer copies it
    tool: options.ToolName = None,
    args: options.ToolArguments = None,
    auth: options.Authentication = None,
    header: options.Header = [],  # noqa: B006 - typer copies it
    config: options.Config = None,
    timeout: options.Timeout = options.TIMEOUT,
    recordings: options.Recordings = None,
    fail_on: options.FailOn = [],  # noqa: B006 - typer copies it
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Run real SDK releases as clients against targets and find out where their time goes."""
    from mcpace.lab import journal, targets
    from mcpace.lab.clients.plan import Plan, Settings
    from mcpace.lab.clients.run_clients import run_clients
    from mcpace.lab.errors import UsageProblem
    from mcpace.lab.headers import parse_headers

    check_codes(fail_on)
    call, way_in = options.chosen_tool(tool, args), options.checked_authentication(auth)
    added = parse_headers(header)
    places = tuple(targets.parse_target(text, config=config, auth=way_in, tool=call, headers=added) for text in target)
    if len({place.name for place in places}) < len(places):
        raise UsageProblem("a target is named twice, or two differ in their query only")
    settings = Settings(trials, hold, options.checked_faults(fault, places), timeout, recordings, calls)
    what = f"{', '.join(subjects)} at {', '.join(one.name for one in places)}"
    with show_progress() as display, journal.record_progress(display, out, "clients", what) as progress:
        run = run_clients(Plan(tuple(subjects), places, settings), progress)
    deliver_run(run, as_json=as_json, out=out, page=html, fail_on=fail_on)
