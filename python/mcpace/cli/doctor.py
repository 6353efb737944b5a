"""``mcpace doctor``: lists what this machine has and lacks for mcpace. Needs no extra."""

from __future__ import annotations

import json
import platform
import textwrap
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

import typer

from mcpace import __version__
from mcpace.lab.requirements import Piece, find_pieces
from mcpace.report.words.quantities import clean

LONGEST = 4_096


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("doctor")(doctor)


def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the list as JSON on stdout, and nothing else.")
    ] = False,
) -> None:
    """List what this machine has and lacks for mcpace: what each missing piece would add, and the command that installs
    it.

    The exit code is 0, whatever is missing.
    """
    pieces = list(find_pieces())
    if as_json:
        print(json.dumps({"mcpace": __version__, "pieces": [asdict(piece) for piece in pieces]}, indent=1))
        return
    print(f"mcpace {__version__} on {platform.system()} {platform.release()}")
    present = [piece for piece in pieces if piece.present]
    for title, some in (
        ("Present", present),
        ("Missing", [piece for piece in pieces if not piece.present and not piece.for_development]),
        (
            "Missing, and needed for work on mcpace itself only",
            [piece for piece in pieces if not piece.present and piece.for_development],
        ),
    ):
        if some:
            print(f"\n{title}:")
            print("\n".join(_lines(some)))


def _lines(pieces: Iterable[Piece]) -> Iterable[str]:
    for piece in pieces:
        found = clean(piece.found, LONGEST)
        yield f"  {piece.name:24} {found}".rstrip()
        if not piece.present:
            yield from textwrap.wrap(f"adds: {piece.adds}", 90, initial_indent=" " * 27, subsequent_indent=" " * 33)
            yield f"{'':27}install: {piece.install}"
