"""The command ``mcpace``: its subcommands, and how any end of them becomes one sentence and an exit code.

Exit codes: 0 done; 1 a gate, threshold or ``--fail-on`` was hit; 2 usage; 3 the target or a needed tool could not be
reached or set up; 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mcpace import __version__
from mcpace.cli.notes import flush_stdout, give_up_stdout, note

DONE, USAGE, UNREACHABLE, INTERRUPTED = 0, 2, 3, 130
COMMANDS = (
    "clients",
    "measure",
    "load",
    "servers",
    "layers",
    "bisect",
    "compare",
    "gate",
    "explain",
    "demo",
    "record",
    "export",
    "target",
    "report",
    "ui",
    "serve",
    "migrate",
)
SERVE = "serve"
"""Light: it loads nothing of the lab, and has a way of its own with signals."""


class Commands(TyperGroup):
    """All commands. Typer on its own would say nothing to Ctrl-C and take a reader that left for a failure."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command that was asked for; leaves with an exit code however it ends."""
        code = _ending(lambda: super(Commands, self).invoke(ctx))
        if code != DONE:
            raise typer.Exit(code)


app = typer.Typer(
    name="mcpace",
    help="Finds where the time of an MCP call goes, and says why.",
    cls=Commands,
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
    """Finds the command that was asked for, and runs it."""
    try:
        # A command imports what it needs. All commands are imported only to be listed.
        asked = [command for command in COMMANDS if sys.argv[1:2] == [command]]
        if asked != [SERVE]:
            from mcpace.lab import interruption

            interruption.listen()
        for command in asked:
            importlib.import_module(f"mcpace.cli.{command}").register(app)
        if not asked and sys.argv[1:2] != ["--version"]:
            for command in COMMANDS:
                _list(command)
    except ModuleNotFoundError as error:
        missing = f"the lab needs {error.name}, which is not installed: pip install 'mcpace[lab]'"
        sys.exit(_complain(missing, UNREACHABLE))
    except KeyboardInterrupt:
        sys.exit(_complain("interrupted", INTERRUPTED))
    app()


def _list(command: str) -> None:
    """Registers a command for the list of all. A command whose packages are missing is listed with what to install."""
    try:
        importlib.import_module(f"mcpace.cli.{command}").register(app)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("mcpace"):
            raise
        app.command(command, help="Not installed: pip install 'mcpace[lab]'.")(lambda: None)


def _ending(command: Callable[[], object]) -> int:
    """Runs ``command`` and returns the exit code that its end deserves. Only a fault of mcpace itself gets past it."""
    from mcpace import _core
    from mcpace.server.running.errors import RunProblem

    try:
        command()
        flush_stdout()
    except RunProblem as error:
        from mcpace.server.running.running import tell

        tell(error)
        return error.exit_code
    except _lab_error() as error:
        return _complain(str(error), error.exit_code)
    except _core.UsageProblem as error:
        return _complain(str(error), USAGE)
    except _core.Problem as error:
        return _complain(str(error), UNREACHABLE)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        give_up_stdout()
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _complain(f"{place}{error.strerror or error}", UNREACHABLE)
    return DONE


def _lab_error() -> type[Any]:
    """The lab's errors, where the lab is loaded: where it isn't, none are raised."""
    errors = sys.modules.get("mcpace.lab.errors")
    return errors.LabError if errors else ()  # type: ignore[return-value]


def _complain(sentence: str, code: int) -> int:
    note(sentence)
    return code
