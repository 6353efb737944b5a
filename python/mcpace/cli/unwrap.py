"""``mcpace unwrap``: takes the flight recorder out of the configuration of a host."""

from __future__ import annotations

import typer

from mcpace.cli.wrap import Configs, Servers, change_files, named_servers
from mcpace.lab.hosts.flight_changes import FlightChanges
from mcpace.lab.hosts.flights import flights_root


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("unwrap")(unwrap)


def unwrap(
    configs: Configs,
    server: Servers = [],  # noqa: B006 - typer copies it
) -> None:
    """Take the flight recorder out of a host's configuration, and leave everything else as it is.

    A configuration that nobody has changed since mcpace wrap gets its bytes back. Recordings are kept.
    """
    done = change_files(configs, server, FlightChanges(flights_root()).unwrap)
    for file, change in done:
        print(f"{file.path}: {named_servers(change.changed)} restored")
