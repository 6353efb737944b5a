"""``mcpace bisect``: finds the release that broke or fixed something, by real runs."""

from __future__ import annotations

from typing import Annotated

import typer

from mcpace.cli import options
from mcpace.cli.output import deliver_run, save_and_show
from mcpace.cli.progress import show_progress


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("bisect")(bisect)


def bisect(
    sdk: Annotated[str, typer.Argument(metavar="SDK", help="The SDK, e.g. python.")],
    good: Annotated[str, typer.Option(help="A release without the regression.")],
    bad: Annotated[
        str,
        typer.Option(
            help="A release with the regression. If it is older than --good, the release that fixed it is found."
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            metavar="TARGET",
            help="URL, stdio:COMMAND, serve:COMMAND, MODULE:SERVER, FILE.py:SERVER, profile:NAME, or a name from "
            "--config.",
        ),
    ],
    trials: options.Trials = 3,
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
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Find the first bad release between two, running only about log2(n) of them."""
    from mcpace.lab import journal, targets
    from mcpace.lab.clients.plan import Settings
    from mcpace.lab.compare import bisect as lab
    from mcpace.lab.headers import parse_headers

    place = targets.parse_target(
        target,
        config=config,
        auth=options.checked_authentication(auth),
        tool=options.chosen_tool(tool, args),
        headers=parse_headers(header),
    )
    settings = Settings(trials, hold, options.checked_faults(fault, [place]), timeout, recordings, calls)
    try:
        what = f"{sdk} from {good} to {bad} at {place.name}"
        with show_progress() as display, journal.record_progress(display, out, "bisect", what) as progress:
            run = lab.run(sdk, good, bad, place, settings, progress)
    except lab.Inconclusive as end:
        save_and_show(end.run, as_json=as_json, out=out, page=html)
        raise end.reason from end
    deliver_run(run, as_json=as_json, out=out, page=html)
