"""``mcpace ui``: shows a folder of runs in the browser."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mcpace.cli import options
from mcpace.cli.notes import inform
from mcpace.lab.defaults import TOLERANCE


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("ui")(ui)


def ui(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where runs are saved, by --out.")] = Path(),
    port: options.Port = 0,
    browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the browser, where this is a terminal.")
    ] = True,
) -> None:
    """Look at a folder of runs in the browser: each run, two side by side, one in progress as it goes.

    Servers of a host that mcpace wrap has put behind the flight recorder are shown as well, while they are used.

    The page is served on this machine only, and only at the printed address. Ctrl-C ends it.
    """
    from mcpace.lab.compare.comparison import run_of
    from mcpace.lab.errors import LabError, UsageProblem
    from mcpace.lab.hosts.flights import flights_root
    from mcpace.report.page.html import NotBuilt
    from mcpace.report.words.quantities import LONGEST, clean
    from mcpace.ui.flights import Flights
    from mcpace.ui.folder import Folder
    from mcpace.ui.opening import has_browser, open_browser
    from mcpace.ui.server import HOST, Server

    if not folder.is_dir():
        raise UsageProblem(f"{folder} is not a folder: give the folder that holds the runs saved with --out")
    try:
        runs = Folder(folder.resolve(), partial(run_of, tolerance=TOLERANCE), Flights(flights_root()))
        server = Server(runs, port)
    except NotBuilt as error:
        raise LabError(str(error)) from error
    except OSError as error:
        raise LabError(f"cannot listen on {HOST}:{port}: {error.strerror}") from error
    with server:
        print(f"mcpace ui of {clean(folder.resolve(), LONGEST)} at {server.url}", flush=True)
        shown = browser and sys.stdout.isatty() and has_browser(os.environ)
        try:
            with open_browser(server.url) if shown else nullcontext():
                server.serve_forever()
        except KeyboardInterrupt:
            inform("ended")
