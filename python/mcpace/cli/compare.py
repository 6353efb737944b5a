"""``mcpace compare``: compares two saved runs, metric by metric."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpace.cli import options
from mcpace.cli.compare_options import Junit, Markdown, Tolerance, comparison_writer
from mcpace.cli.file_kind import load_run
from mcpace.cli.output import deliver_run
from mcpace.lab.defaults import TOLERANCE


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("compare")(compare)


def compare(
    base: Annotated[Path, typer.Argument(metavar="BASE", help="A run as JSON, from --out: the first side.")],
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The second side, a run as JSON.")],
    tolerance: Tolerance = f"{TOLERANCE:.0%}",  # type: ignore[assignment]  # read by its parser
    markdown: Markdown = None,
    junit: Junit = None,
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Compare two saved runs: ratios with intervals, changes for the worse, and the smallest detectable change.

    Runs that were measured one after the other also differ by other work of the machine; `mcpace gate` measures in
    turns.
    """
    from mcpace.lab.compare import comparison as lab

    result = lab.run_of(load_run(base), load_run(run), tolerance, (base.name, run.name))
    deliver_run(result, as_json=as_json, out=out, page=html, also=comparison_writer(markdown, junit))
