"""``mcpace gateway``: what a gateway or proxy adds to a server's calls, and what it changes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mcpace.cli import options
from mcpace.cli.output import check_codes, deliver_run
from mcpace.cli.progress import show_progress
from mcpace.cli.times import parse_seconds
from mcpace.lab.gateway.plan import DEFAULT_DURATION_S, DEFAULT_TRIALS, DEFAULT_VUS, GatewayPlan
from mcpace.lab.targets import Target

DURATION: Any = f"{DEFAULT_DURATION_S:g}s"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("gateway")(gateway)


def gateway(
    direct: Annotated[str, typer.Option(metavar="TARGET", help="The server itself, a target as for `measure`.")],
    through: Annotated[
        str,
        typer.Option(
            metavar="TARGET",
            help="The gateway in front of it: a URL, or a command in which {direct} stands for the server's URL or "
            "command, as in 'serve:mcp-proxy --transport streamablehttp --port 9000 {direct}'.",
        ),
    ],
    tool: options.ToolName = None,
    args: options.ToolArguments = None,
    vus: Annotated[
        int | None, typer.Option(help=f"Users of the load on each path. [default: {DEFAULT_VUS}]", min=1)
    ] = None,
    duration: Annotated[
        float,
        typer.Option(parser=parse_seconds, metavar="TIME", help="Measured time of the load on each path; 0s for none."),
    ] = DURATION,
    trials: options.Trials = DEFAULT_TRIALS,
    calls: options.Calls = options.CALLS,
    revision: options.Revision = None,
    auth: options.Authentication = None,
    header: options.Header = [],  # noqa: B006 - typer copies it
    config: options.Config = None,
    cacert: options.Cacert = None,
    hold: options.Hold = options.HOLD,
    fault: options.Fault = [],  # noqa: B006 - typer copies it
    python: options.Python = None,
    timeout: options.Timeout = options.TIMEOUT,
    fail_on: options.FailOn = [],  # noqa: B006 - typer copies it
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Measure a server directly and through a gateway, in turns: the added time by percentile and by part of a call,
    the throughput of both, and what the gateway changes.

    With {direct} in the gateway's command, mcpace starts the gateway again to observe its requests to the server, and
    to see whether a stream passes at once.
    """
    from mcpace.lab import journal, targets
    from mcpace.lab.clients.plan import Settings
    from mcpace.lab.gateway.run_gateway import run_gateway
    from mcpace.lab.headers import parse_headers

    check_codes(fail_on)
    checked_revision = options.checked_revision(revision)
    call, way_in = options.chosen_tool(tool, args), options.checked_authentication(auth)
    added = parse_headers(header)
    interpreter = options.interpreter_path(python)

    def parse_side(text: str) -> Target:
        headers = added if not text.startswith(("stdio:", "profile:")) else ()
        return targets.parse_target(text, config=config, auth=way_in, tool=call, headers=headers, python=interpreter)

    server, proxy = parse_side(direct), parse_side(through)
    faults = options.checked_faults(fault, [server]) if fault else ()
    settings = Settings(trials, hold, faults, timeout, calls=calls)
    plan = GatewayPlan(server, proxy, checked_revision, cacert, vus or DEFAULT_VUS, duration)
    with show_progress() as display, journal.record_progress(display, out, "gateway", proxy.name) as progress:
        run = run_gateway(plan, settings, progress)
    deliver_run(run, as_json=as_json, out=out, page=html, fail_on=fail_on, tool=tool)
