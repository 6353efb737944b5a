"""``mcpace servers``: compares real SDK servers under equal load."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from mcpace.cli import options
from mcpace.cli.output import check_codes, deliver_run
from mcpace.cli.progress import show_progress
from mcpace.cli.times import parse_seconds
from mcpace.lab.errors import UnknownName
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.servers.plan import (
    DEFAULT_DURATION_S,
    DEFAULT_MEMORY,
    DEFAULT_ROUNDS,
    DEFAULT_VUS,
    DEFAULT_WARM_UP_S,
    OLDER,
    REVISION,
    REVISIONS,
    WORKLOADS,
    ServersPlan,
)

SESSIONS = ("user", "call", "none")
STATES = ("stateless", "stateful")
DURATION: Any = f"{DEFAULT_DURATION_S:g}s"
WARM_UP: Any = f"{DEFAULT_WARM_UP_S:g}s"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("servers")(servers)


def servers(
    subjects: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME[@VERSION][:MODE]...", help="Servers, e.g. rmcp@3.9.0:json python@2.3.0:sse mcpace."
        ),
    ],
    workload: Annotated[
        str,
        typer.Option(
            metavar="|".join(WORKLOADS),
            help="echo: one tool; shop: three tools with an HTTP API and Redis; shop-quick: shop with quicker client "
            "libraries in the Python servers.",
        ),
    ] = "echo",
    vus: Annotated[int | None, typer.Option(help=f"Number of users. [default: {DEFAULT_VUS}]", min=1)] = None,
    rate: Annotated[
        float | None, typer.Option(help="Calls per second instead of users, whatever the server does.", min=0.1)
    ] = None,
    duration: Annotated[
        float, typer.Option(parser=options.parse_limit, metavar="TIME", help="Each server's load, over all its rounds.")
    ] = DURATION,
    rounds: Annotated[int, typer.Option(help="Turns of each server.", min=1, max=100)] = DEFAULT_ROUNDS,
    warm_up: Annotated[
        float, typer.Option(parser=parse_seconds, metavar="TIME", help="Load before the first round, left out.")
    ] = WARM_UP,
    cpus: Annotated[
        float | None, typer.Option(help="Processors of each server. [default: 2, or 1 on a machine with one]", min=0.05)
    ] = None,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory of each server, where control groups are allowed.")
    ] = DEFAULT_MEMORY,
    session: Annotated[
        str | None,
        typer.Option(metavar="|".join(SESSIONS), help="One session per user, one per call, or none. [default: user]"),
    ] = None,
    state: Annotated[str, typer.Option(metavar="|".join(STATES), help="How servers are started.")] = "stateless",
    revision: Annotated[
        str | None,
        typer.Option(help=f"Protocol revision. [default: {REVISION}, or {OLDER} where a server has no newer one]"),
    ] = None,
    server_timing: Annotated[
        bool,
        typer.Option(
            "--server-timing/--no-server-timing",
            help="Ask servers for their layers, with an additional user and up to ten calls a second.",
        ),
    ] = False,
    inside: options.Inside = False,
    fail_on: options.FailOn = [],  # noqa: B006 - typer copies it
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Put real SDK servers under the same load: throughput, latency by tool, CPU and memory, side by side.

    All servers have the same limits of CPUs and memory. Their answers are checked first, and they take turns in
    rounds. A server that cannot be built, fails its check or dies is a row with an error; the others continue.
    """
    from mcpace.lab import journal
    from mcpace.lab.servers.run_servers import run_servers

    check_codes(fail_on)
    plan = ServersPlan(
        subjects=tuple(subjects),
        workload=_one_of("workload", workload, WORKLOADS),
        vus=vus,
        rate=rate,
        duration_s=duration,
        rounds=rounds,
        warm_up_s=warm_up,
        cpus=cpus,
        memory=memory,
        session=cast(Any, session and _one_of("session", session, SESSIONS)),
        state=cast(Any, _one_of("state", state, STATES)),
        revision=revision and _one_of("revision", revision, REVISIONS),
        server_timing=server_timing,
        inside=inside,
    )
    with defer_interrupt():
        with (
            show_progress() as display,
            journal.record_progress(display, out, "servers", ", ".join(subjects)) as progress,
        ):
            run = run_servers(plan, progress)
        deliver_run(run, as_json=as_json, out=out, page=html, fail_on=fail_on)


def _one_of(kind: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise UnknownName(kind, value, known)
    return value
