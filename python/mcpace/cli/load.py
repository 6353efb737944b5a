"""``mcpace load``: closed or open load on any MCP server.

Design constraint: Scenarios, the Run and its report are imported after the first request, which doesn't need them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mcpace.cli import load_arguments, load_words, options
from mcpace.cli.load_arguments import LoadArguments
from mcpace.cli.load_export import run_exporter
from mcpace.cli.load_view import show_load
from mcpace.cli.times import parse_seconds
from mcpace.lab import journal, targets
from mcpace.lab.errors import UsageProblem
from mcpace.lab.headers import parse_headers
from mcpace.lab.load.run_load import run_load
from mcpace.lab.load.settings import LoadSettings
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.targets import Target


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("load")(load)


def load(
    context: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="URL, stdio:COMMAND (a process for each user), serve:COMMAND (a program that listens), MODULE:SERVER, "
            "FILE.py:SERVER, profile:NAME, or a name from --config or --scenario.",
        ),
    ] = None,
    vus: Annotated[int | None, typer.Option(help="Closed load: the number of users. [default: 10]", min=1)] = None,
    rate: Annotated[
        float | None, typer.Option(help="Open load: calls per second, whatever the target does.", min=0)
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(parser=parse_seconds, metavar="TIME", help="Length of the measurement. [default: 10s]"),
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="TIME:COUNT,...",
            help="Ramps: 10s:50,30s:200 goes to 50 users (with --rate: calls a second) in 10 s, then to 200 in 30 s.",
        ),
    ] = None,
    tool: Annotated[
        str | None, typer.Option("--tool", help="The one tool to call; the short form of --mix TOOL=1.")
    ] = None,
    mix: Annotated[
        list[str],
        typer.Option(
            "--mix",
            metavar="TOOL=WEIGHT",
            help="Tools to call, with weights. tools/list and ping count as tools. Repeatable.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    args: Annotated[
        list[str],
        typer.Option(
            "--args",
            metavar="[TOOL=]JSON",
            help="A tool's arguments; with --tool, JSON alone. "
            "Strings may hold {{counter}}, {{random(1,100)}}, {{uuid}}, {{user}} and {{choice:NAME}}.",
        ),
    ] = [],  # noqa: B006
    data: Annotated[
        list[str], typer.Option("--data", metavar="NAME=FILE", help="The choices of {{choice:NAME}}, one per line.")
    ] = [],  # noqa: B006
    think: Annotated[
        float | None, typer.Option(parser=parse_seconds, metavar="TIME", help="Pause of a user between two calls.")
    ] = None,
    arrivals: Annotated[
        str | None,
        typer.Option(
            metavar="constant|poisson", help="Distribution of an open load's calls in time. [default: constant]"
        ),
    ] = None,
    max_in_flight: Annotated[
        int | None,
        typer.Option(
            help="Most concurrent calls of an open load; further calls wait and count as late. [default: 1000]", min=1
        ),
    ] = None,
    max_calls: Annotated[int | None, typer.Option(help="End after this number of calls.", min=1)] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="user|call|none", help="One session per user, one per call, or none. [default: user]"),
    ] = None,
    revision: options.Revision = None,
    accept: Annotated[
        str | None, typer.Option(metavar="both|json|sse", help="Reply types that requests accept. [default: both]")
    ] = None,
    warm_up: Annotated[
        float | None,
        typer.Option(
            parser=parse_seconds, metavar="TIME", help="Load before the measurement, left out of it. [default: 1s]"
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(parser=options.parse_limit, metavar="TIME", help="Limit of each call. [default: 30s]"),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the generator. [default: 1]", min=1)] = None,
    cores: Annotated[str | None, typer.Option(metavar="0,2-3", help="Pin the generator's threads to these.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all random values. [default: 1]", min=0)] = None,
    threshold: Annotated[
        list[str],
        typer.Option(
            "--threshold",
            metavar="LIMIT",
            help="Exit with 1 where this limit is not met: 'p99<50ms', 'errors<0.1%', 'rps>1000', 'echo:p95<20ms'.",
        ),
    ] = [],  # noqa: B006
    scenario: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="These options from a file; the command line overrides it.")
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Send a recording's requests (up to 1,000) in order, each user in a session."
        ),
    ] = None,
    workers: Annotated[
        list[str],
        typer.Option(
            "--workers",
            metavar="PLACES",
            help="Divide the load among workers: local:N, N processes here; ssh:HOST,USER@HOST:PORT; ray:N@ADDRESS, N "
            "actors of a Ray cluster (mcpace[ray]); tcp:HOST:PORT, where mcpace load-worker --listen runs; or, with "
            "--manifest, pods:N. All workers need the same version of mcpace. Repeatable.",
        ),
    ] = [],  # noqa: B006
    worker_command: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="The command mcpace on the hosts of --workers ssh:. [default: mcpace]"),
    ] = None,
    manifest: Annotated[
        str | None,
        typer.Option(
            metavar="kubernetes[:NAME]",
            help="Print a manifest that makes this load in a cluster, and end: an Indexed Job of workers behind a "
            "headless service, and a Job of the driver.",
        ),
    ] = None,
    image: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="The image of --manifest. [default: that of this release]")
    ] = None,
    header: options.Header = [],  # noqa: B006 - typer copies it
    bearer: Annotated[
        str | None,
        typer.Option(metavar="VARIABLE", help="The environment variable of the bearer token; read once, at the start."),
    ] = None,
    auth: options.Authentication = None,
    config: options.Config = None,
    cacert: options.Cacert = None,
    server_timing: Annotated[
        bool,
        typer.Option(
            "--server-timing/--no-server-timing",
            help="Ask the server for its layers, with an additional user and up to ten calls a second.",
        ),
    ] = False,
    inside: options.Inside = False,
    pid: options.Pid = None,
    python: options.Python = None,
    hold: options.Hold = options.HOLD,
    fault: options.Fault = [],  # noqa: B006
    prometheus: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the figures as Prometheus metrics (mcpace[otel]).")
    ] = None,
    otlp: Annotated[
        str | None, typer.Option(metavar="URL", help="Send the figures to an OTLP/HTTP collector (mcpace[otel]).")
    ] = None,
    fail_on: options.FailOn = [],  # noqa: B006 - typer copies it
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Put load on a server: users who wait for their replies, or calls at a rate that the server cannot slow down.

    Each reply is parsed and checked. Latency counts from the time at which a call was due. Without --tool and --mix,
    the tool echo is called, or a read-only tool that needs no arguments, or the only tool that needs none.
    """
    variables: list[str] = []
    if manifest is not None:
        from mcpace.cli import load_manifest

        variables = load_manifest.stand_in_variables(header, bearer, scenario)
    elif image is not None:
        raise UsageProblem("--image is the image of a manifest: give --manifest, too")
    command_line = LoadArguments(
        target=target,
        vus=vus,
        rate=rate,
        arrivals=arrivals,
        max_in_flight=max_in_flight,
        duration=duration,
        stages=load_words.parse_stages(stages) if stages is not None else None,
        warm_up=warm_up,
        think=think,
        max_calls=max_calls,
        mix=load_words.select_mix(tool, mix) or None,
        args=load_words.parse_arguments(args, tool) or None,
        data=load_words.read_data(data) or None,
        replay=replay,
        session=session,
        revision=revision,
        accept=accept,
        timeout=timeout,
        threads=threads,
        cores=load_words.parse_cores(cores) if cores is not None else None,
        seed=seed,
        header=parse_headers(header) or None,
        bearer=bearer,
        auth=auth,
        threshold=tuple(threshold) or None,
        cacert=cacert,
        workers=tuple(workers) or None,
        worker_command=worker_command,
    )
    arguments = (
        load_arguments.merge_arguments(command_line, _read_scenario(scenario)) if scenario is not None else command_line
    )
    place = _load_target(arguments, config, options.interpreter_path(python))
    options.check_inside(inside, pid, place)
    notes: list[str] = []
    settings = load_arguments.resolve_arguments(
        arguments, hold_s=hold, faults=options.checked_faults(fault, [place]), notes=notes
    )
    settings = replace(settings, headers=place.headers, server_timing=server_timing, inside=inside, pid=pid)
    _check_workers(settings, place)
    if manifest is not None:
        load_manifest.print_manifest(context, place, settings, variables)
        return
    _check_pods(settings)
    exporter = run_exporter(prometheus, otlp)
    with defer_interrupt():
        with show_load() as display, journal.record_load(display, out, place.name) as watcher:
            for note in notes:
                watcher.note(note)
            run = run_load(place, settings, watcher)
        from mcpace.cli.output import deliver_run

        deliver_run(run, as_json=as_json, out=out, page=html, fail_on=fail_on, also=exporter)


def _check_workers(settings: LoadSettings, place: Target) -> None:
    """Raises :class:`UsageProblem` where an option contradicts ``--workers``."""
    if not settings.workers:
        return
    if settings.cores:
        raise UsageProblem("--cores are those of one machine: leave them out with --workers")
    if settings.inside or settings.pid is not None:
        raise UsageProblem("--inside and --pid look into a server under the load of this process: leave out --workers")
    is_started_here = place.profile is not None or place.program is not None
    if is_started_here and (hosts := [one.name for one in settings.workers if not one.is_local]):
        raise UsageProblem(
            f"{place.name} is started on this machine's loopback, which {hosts[0]} can't reach: give a URL that all "
            "workers reach, or --workers local:N"
        )


def _check_pods(settings: LoadSettings) -> None:
    """Raises :class:`UsageProblem` where there are pods without a manifest."""
    from mcpace.lab.load.workers.places import PodPlace

    if any(isinstance(place, PodPlace) for place in settings.workers):
        raise UsageProblem("--workers pods:N are started by a manifest: give --manifest kubernetes, too")


def _read_scenario(path: Path) -> LoadArguments:
    from mcpace.cli import load_scenario

    return load_scenario.read_scenario(path)


def _load_target(arguments: LoadArguments, config: Path | None, python: str) -> Target:
    if arguments.target is None:
        raise UsageProblem(f"there is no TARGET: give {targets.KINDS}, or --scenario with one")
    auth = options.checked_authentication(arguments.auth)
    if arguments.bearer is not None:
        auth = None
    place = targets.parse_target(
        arguments.target, config=config, auth=auth, headers=arguments.header or (), python=python
    )
    if arguments.bearer is not None:
        place = replace(place, auth="bearer", token=load_words.read_token(arguments.bearer))
    if place.command and place.auth != "none":
        raise UsageProblem(f"{place.name} is a process, which needs no token: --bearer and --auth need a URL")
    return place
