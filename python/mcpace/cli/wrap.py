"""``mcpace wrap``: puts the flight recorder in front of the servers of a host."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from mcpace.cli.notes import inform, note
from mcpace.lab.errors import LabError, UnknownName
from mcpace.lab.hosts import RING_BYTES
from mcpace.lab.hosts.configuration_file import ConfigurationFile, read_editable_configuration
from mcpace.lab.hosts.flight_changes import FlightChanges
from mcpace.lab.hosts.flight_wrap import Change
from mcpace.lab.hosts.flights import flights_root
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.report.words.quantities import count, size

Configs = Annotated[
    list[Path], typer.Argument(metavar="CONFIG", help="Configurations of hosts, in JSON or TOML, such as mcp.json.")
]
Servers = Annotated[list[str], typer.Option("--server", metavar="NAME", help="Only this server; repeatable.")]
Changes = list[tuple[ConfigurationFile, Change]]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("wrap")(wrap)


def wrap(
    configs: Configs,
    server: Servers = [],  # noqa: B006 - typer copies it
    urls: Annotated[
        bool,
        typer.Option("--urls", help="Also record the servers that have a URL, until Ctrl-C, which restores the URLs."),
    ] = False,
) -> None:
    """Put a flight recorder in front of the servers that a host starts, by rewriting its configuration.

    The newest recordings of each server are kept, for the current user alone. The host records after its next start,
    and goes on if recording fails. mcpace ui shows what it does. mcpace unwrap restores the configuration.
    """
    flights = FlightChanges(flights_root())
    done = change_files(configs, server, flights.wrap_commands)
    for file, change in done:
        print(f"{file.path}: {named_servers(change.changed)} wrapped")
        remote = [entry.name for entry in file.entries if entry.words() is None]
        if remote and not urls:
            inform(f"{file.path}: a URL has {', '.join(remote)}: mcpace wrap --urls records such servers while it runs")
    if any(change.changed for _, change in done):
        inform(f"restart the host; {size(RING_BYTES)} of recordings of each server are kept in {flights.root}")
        inform("to watch: mcpace ui; to restore the configuration: mcpace unwrap CONFIG")
    if urls:
        _record_urls(configs, server, flights)


def change_files(
    configs: list[Path], servers: list[str], change_of: Callable[[ConfigurationFile, frozenset[str]], Change]
) -> Changes:
    """Changes configurations, after all of them were read and every change is known.

    Raises :class:`UsageProblem` for bad input, and :class:`LabError` where a file can't be written.
    """
    files = list({file.place: file for file in map(read_editable_configuration, configs)}.values())
    names = {entry.name for file in files for entry in file.entries}
    for name in servers:
        if name not in names:
            raise UnknownName("server", name, sorted(names))
    done = [(file, change_of(file, frozenset(servers))) for file in files]
    for file, change in done:
        for name, reason in change.left:
            note(f"{file.path}: {name} is left as it is: {reason}")
        if change.text != file.text:
            file.save(change.text)
    return done


def named_servers(paths: list[tuple[str, ...]]) -> str:
    """``2 servers (files, git)``."""
    return f"{count(len(paths), 'server')} ({', '.join(path[-1] for path in paths)})" if paths else "no server"


def _record_urls(configs: list[Path], servers: list[str], flights: FlightChanges) -> None:
    """Records the servers that have a URL until Ctrl-C or SIGTERM, and restores their URLs then.

    Raises :class:`LabError` where a configuration can't be restored, after all others were.
    """
    try:
        # Ctrl-C may come as soon as the first line is printed.
        with contextlib.suppress(KeyboardInterrupt):
            for file, change in change_files(configs, servers, flights.redirect_urls):
                print(f"{file.path}: {named_servers(change.changed)} recorded until Ctrl-C", flush=True)
            if flights.recorders:
                flights.recorders[0].wait()
    finally:
        with defer_interrupt():
            changes, failures = flights.stop_recording(configs)
            for _, problem in failures:
                note(str(problem))
            # The reader of stdout may be gone.
            with contextlib.suppress(OSError):
                for path, change in changes:
                    print(f"{path}: {named_servers(change.changed)} restored", flush=True)
            if failures:
                paths = shlex.join(str(path) for path, _ in failures)
                raise LabError(f"the URLs of recorders are still in the configuration: run mcpace unwrap {paths}")
