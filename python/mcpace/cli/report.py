"""``mcpace report``: shows a saved run on the terminal, as HTML, or in the formats of CI systems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcpace.cli import options
from mcpace.cli.compare_options import Junit, Markdown
from mcpace.cli.file_kind import load_run
from mcpace.cli.output import UNREACHABLE, save_text, show_run
from mcpace.lab.errors import UsageProblem

if TYPE_CHECKING:
    from mcpace.report.model.run import Run


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report")(report)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run as JSON, from --out.")],
    html: options.Html = None,
    markdown: Markdown = None,
    junit: Junit = None,
    sarif: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write the problems as SARIF 2.1.0, for code scanning."),
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write the problems as annotations of GitHub Actions."),
    ] = None,
    prefix: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the repository in which the run was measured, for the paths of --sarif and --annotations.",
        ),
    ] = "",
    as_json: options.Json = False,
) -> None:
    """Show a saved run on the terminal, as an HTML file, or in the formats of CI systems."""
    loaded = load_run(run)
    if junit is not None and loaded.comparison is None and not loaded.limits:
        raise UsageProblem(
            f"--junit needs a comparison or limits on tokens, and {run} is a run of {loaded.kind}: write --markdown"
        )
    shown = show_run(loaded, as_json=as_json, page=html)
    # All files are written, even if one fails.
    written = [
        save_text(path, make(loaded), what) == path
        for path, make, what in _writers(markdown, junit, sarif, annotations, prefix)
        if path is not None
    ]
    if not all([shown, *written]):
        raise typer.Exit(UNREACHABLE)


def _writers(
    markdown: Path | None, junit: Path | None, sarif: Path | None, annotations: Path | None, prefix: str
) -> list[tuple[Path | None, Callable[[Run], str], str]]:
    # Imported late: most runs are only shown.
    from mcpace.report.ci.annotations import github_annotations
    from mcpace.report.ci.junit import junit as junit_of
    from mcpace.report.ci.markdown import markdown as markdown_of
    from mcpace.report.ci.sarif import sarif as sarif_of

    return [
        (markdown, markdown_of, "summary"),
        (junit, junit_of, "JUnit report"),
        (sarif, lambda run: sarif_of(run, prefix), "SARIF report"),
        (annotations, lambda run: github_annotations(run, prefix), "annotations"),
    ]
