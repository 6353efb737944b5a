"""``mcpace report``: shows a saved run on the terminal or as HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpace.cli import options
from mcpace.cli.file_kind import load_run
from mcpace.cli.output import show_run


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report")(report)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run as JSON, from --out.")],
    html: options.Html = None,
    as_json: options.Json = False,
) -> None:
    """Show a saved run on the terminal, or as an HTML file with --html."""
    show_run(load_run(run), as_json=as_json, page=html)
