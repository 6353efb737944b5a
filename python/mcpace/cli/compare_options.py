"""Options shared by `compare` and `gate`: tolerances, refused changes of the listing, and further files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcpace.cli.output import save_text
from mcpace.lab.errors import UsageProblem

if TYPE_CHECKING:
    from mcpace.report.model.drift import Level
    from mcpace.report.model.run import Run


def parse_share(text: str) -> float:
    """Parses ``10%`` or ``0.1`` as a share. A bare ``10`` is refused, since it probably means a percentage."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    value = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= value <= (10 if match and match[2] else 1):
        raise typer.BadParameter(
            f"{text!r} is not a tolerance: write 10% or 0.1; above 100 % write the percent sign, up to 1000%"
        )
    return value


Tolerance = Annotated[
    float, typer.Option(parser=parse_share, metavar="SHARE", help="Accepted change for the worse, e.g. 10%.")
]
Drift = Annotated[
    str,
    typer.Option(
        metavar="breaking|widening|wording|none",
        help="Smallest change of the listed tools that fails: one that breaks callers, one that adds something, one of "
        "words, or none.",
    ),
]
Markdown = Annotated[
    Path | None,
    typer.Option(metavar="FILE", dir_okay=False, help="Write a summary in Markdown, e.g. for $GITHUB_STEP_SUMMARY."),
]
Junit = Annotated[
    Path | None,
    typer.Option(metavar="FILE", dir_okay=False, help="Write JUnit XML, a test case for each figure."),
]


def checked_drift(word: str) -> Level | None:
    """Converts ``--drift`` to the lowest level that fails the gate; ``None`` for ``none``.

    Raises :class:`UsageProblem` for any other word.
    """
    from mcpace.report.model.drift import LEVELS

    limit = next((level for level in LEVELS if level == word), None)
    if limit is None and word != "none":
        raise UsageProblem(f"--drift takes {', '.join(LEVELS)} or none, not {word!r}")
    return limit


def comparison_writer(markdown: Path | None, junit: Path | None) -> Callable[[Run], bool] | None:
    """Returns a function that writes the files and returns whether it succeeded; ``None`` without a file."""
    if markdown is None and junit is None:
        return None

    def write_metrics(run: Run) -> bool:
        from mcpace.report.ci.junit import junit as junit_of
        from mcpace.report.ci.markdown import markdown as markdown_of

        wanted = ((markdown, markdown_of, "summary"), (junit, junit_of, "JUnit report"))
        # Both files are written, even if the first fails.
        places = [save_text(path, make(run), what) == path for path, make, what in wanted if path is not None]
        return all(places)

    return write_metrics
