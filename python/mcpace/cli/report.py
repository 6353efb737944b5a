"""``mcpace report``: a saved run, for people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpace.cli import options
from mcpace.cli.deliver import show
from mcpace.lab.errors import UsageProblem
from mcpace.report.run import Run, RunFormatError


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report")(report)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run as JSON, from --out.")],
    html: options.Html = None,
    as_json: options.Json = False,
) -> None:
    """Show a saved run on the terminal, or as an HTML file with --html."""
    try:
        loaded = Run.load(run)
    except OSError as error:
        raise UsageProblem(f"cannot read {run}: {error.strerror}") from error
    except RunFormatError as error:
        raise UsageProblem(f"{run} is {error}") from error
    show(loaded, as_json=as_json, page=html)
