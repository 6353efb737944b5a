"""The command ``mcpace``: its subcommands, and how any end of them becomes one sentence and an exit code.

Exit codes: 0 done; 1 a gate, threshold or ``--fail-on`` was hit; 2 usage; 3 the target or a needed tool could not be
reached or set up; 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys
from typing import Annotated

import typer

from mcpace import __version__

INTERRUPTED = 130

app = typer.Typer(
    name="mcpace",
    help="Finds where the time of an MCP call goes, and says why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"mcpace {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Finds where the time of an MCP call goes, and says why."""


def main() -> None:
    """Entry point of the console script."""
    try:
        for command in ("clients", "measure", "bisect", "demo", "record", "target", "report"):
            importlib.import_module(f"mcpace.cli.{command}").register(app)
    except ModuleNotFoundError as error:
        sys.exit(_complain(f"the lab needs {error.name}, which is not installed: pip install 'mcpace[lab]'", 3))
    from mcpace.lab.errors import LabError

    try:
        app()
    except LabError as error:
        sys.exit(_complain(str(error), error.exit_code))
    except KeyboardInterrupt:
        sys.exit(_complain("interrupted", INTERRUPTED))
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain about it at exit.
        sys.stdout = None
        sys.exit(0)


def _complain(sentence: str, code: int) -> int:
    print(f"mcpace: {sentence}", file=sys.stderr)
    return code
