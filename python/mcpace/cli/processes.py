"""``mcpace processes``: lists the servers that hosts started, and ends those without a host."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcpace.cli import options
from mcpace.cli.output import deliver_run
from mcpace.cli.progress import show_progress
from mcpace.lab.errors import UnknownName, UsageProblem
from mcpace.report.words.quantities import clean

if TYPE_CHECKING:
    from mcpace.report.model.run import Run


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("processes")(processes)


def processes(
    configurations: Annotated[
        list[Path] | None,
        typer.Argument(metavar="CONFIG", help="Hosts' configurations (mcp.json), which name the servers."),
    ] = None,
    host: Annotated[
        int | None,
        typer.Option("--pid", metavar="PID", help="List only the servers that this host process started.", min=1),
    ] = None,
    end: Annotated[
        bool, typer.Option("--end", help="End the servers without a host. Asks before it ends anything.")
    ] = False,
    fail_on: options.FailOn = [],  # noqa: B006 - typer copies it
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """List the MCP servers over stdio that run for you: host, age, memory, and the configuration they come from.

    Names servers without a host, servers that a host started twice, and servers that a host never reaped. Linux only.
    """
    from mcpace.lab.processes import host_processes
    from mcpace.report.model.processes import CODES

    for code in fail_on:
        if code not in (*CODES, "any"):
            raise UnknownName("finding", code, [*CODES, "any"])
    if end and not sys.stdin.isatty():
        raise UsageProblem("--end asks before it ends anything, and stdin is no terminal: run it in a terminal")
    with show_progress() as progress:
        run = host_processes.list_processes(configurations or [], host, progress)
    if end:
        _end_orphans(run)
    deliver_run(run, as_json=as_json, out=out, page=html, fail_on=fail_on)


def _end_orphans(run: Run) -> None:
    """Lists the servers without a host on stderr, asks, and ends them."""
    from mcpace.lab.processes.host_processes import end_servers
    from mcpace.report.words.processes import age_words, server_words

    assert run.processes is not None, "the run is a list of processes"
    pids = [pid for finding in run.processes.findings if finding.code == "orphaned-server" for pid in finding.pids]
    if not pids:
        return
    for one in run.processes.servers:
        if one.pid in pids:
            typer.echo(f"  {server_words(one)}: {clean(one.command)}, {age_words(one.age_s)} old", err=True)
    if typer.confirm(f"End {'this server' if len(pids) == 1 else f'these {len(pids)} servers'}?", err=True):
        run.processes.ended = end_servers(pids, run)
