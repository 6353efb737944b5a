"""The command ``mcpace``: its subcommands, and the conversion of their errors to one sentence and an exit code.

Exit codes: 0 done; 1 a gate, threshold or ``--fail-on`` was hit; 2 usage; 3 the target or a required program could not
be reached or set up; 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mcpace import __version__
from mcpace.cli.notes import flush_stdout, give_up_stdout, note, silence_information

DONE, USAGE, UNREACHABLE, INTERRUPTED = 0, 2, 3, 130
SECTIONS = {
    "Find out why it is slow": {
        "check": "Start all servers of a host's configuration: time and tokens of each.",
        "measure": "Split a server's time by layer and name causes.",
        "explain": "Change one thing at a time on a server, or explain a recording.",
        "clients": "Run real SDK releases as clients and find their time.",
        "limits": "Find the time after which real SDK releases give up.",
        "layers": "Measure the layers inside one Python server.",
        "record": "Record what passes between a client and a server.",
        "wrap": "Record all servers of a host, for as long as you like.",
        "unwrap": "Take the recorder out of a host's configuration.",
        "processes": "List the servers of your hosts, and those left behind.",
    },
    "Put load on it": {
        "load": "Closed or open load on a server, each reply checked.",
        "servers": "Real SDK servers under the same load, in turns.",
    },
    "Compare and gate": {
        "gate": "Exit with 1 where a server got slower or breaks callers.",
        "compare": "Compare two saved runs.",
        "gateway": "Measure what a gateway adds and changes, beside the direct path.",
        "replicas": "Try copies of a server behind a load balancer.",
        "bisect": "Find the release that made it slow.",
    },
    "Serve": {
        "serve": "Serve an MCP server from the runtime.",
        "migrate": "Change a project's imports of mcp or fastmcp to mcpace's.",
        "target": "Run a scripted MCP server with faults.",
        "mcp": "Serve the lab to agents, as MCP tools.",
    },
    "Look at results": {
        "report": "Show a saved run on the terminal or as HTML.",
        "ui": "Look at a folder of runs in the browser.",
        "export": "Write recordings as HAR, Chrome trace, OTLP spans or Parquet.",
        "query": "Ask the tables of many recordings: what is slow, what got slower.",
        "demo": "Find a real regression, on this machine alone.",
    },
    "Set up": {
        "doctor": "List what this machine has and lacks for mcpace.",
        "completion": "Print the completion script of a shell.",
    },
}
"""The list of ``mcpace --help``: a command is imported only when it runs."""
SUMMARIES = {name: summary for section in SECTIONS.values() for name, summary in section.items()}
COMMANDS = tuple(SUMMARIES)
LAB_PACKAGES = ("numpy", "packaging", "rich", "toktok", "uv", "websockets")
"""Modules of the extra ``lab``, which most commands need."""
EXTRA_OF = {**dict.fromkeys(LAB_PACKAGES, "lab"), "pyarrow": "parquet", "duckdb": "parquet", "ray": "ray"}
"""Extra that installs each module."""
COMPLETE_VARIABLE = "_MCPACE_COMPLETE"
"""Environment variable with which a shell's completion script asks for completions."""
SERVE = "serve"
"""Command that loads nothing of the lab and handles signals itself."""


class Commands(TyperGroup):
    """All commands, each imported when it is used. Errors become one sentence and an exit code."""

    reads_settings = True
    """Whether a settings file sets defaults."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command of the command line and exits with its exit code."""
        code = _run_command(lambda: super(Commands, self).invoke(ctx))
        if code != DONE:
            raise typer.Exit(code)

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands' names, in the order of ``--help``."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports a command; ``None`` for an unknown name."""
        if cmd_name not in SUMMARIES:
            return None
        own = typer.Typer(rich_markup_mode=None, add_completion=False)
        try:
            importlib.import_module(f"mcpace.cli.{cmd_name}").register(own)
        except ModuleNotFoundError:
            if ctx.resilient_parsing:  # a shell asks for completions, and there are none without the extra
                return None
            raise
        command = typer.main.get_command(own)
        if cmd_name != SERVE:
            command.params.append(_quiet_option())
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Imports the command and makes the settings of a file its defaults.

        Names the nearest command in the error for an unknown one.
        """
        if args and args[0] not in SUMMARIES:
            from difflib import get_close_matches

            if near := get_close_matches(args[0], COMMANDS, n=1):
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]}?")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and self.reads_settings and not ctx.resilient_parsing:
            from mcpace.cli.settings_file import load_defaults

            own = command.context_class(command, info_name=name, parent=ctx)
            ctx.default_map = {name: load_defaults(own, command, rest, COMMANDS)}
        return name, command, rest

    def get_help_option(self, ctx: Any) -> Any:
        """The option ``--help``. Its default is a bool: typer imports pydantic to convert any other value."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of ``--help``, by section."""
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:8}", summary) for name, summary in commands.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Names and options for the shell. Imports no command."""
        from typer._click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=text) for name, text in SUMMARIES.items() if name.startswith(incomplete)]
        return names + super(TyperGroup, self).shell_complete(ctx, incomplete)


app = typer.Typer(
    name="mcpace",
    help="Finds where the time of an MCP call goes, and says why.",
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"mcpace {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Finds where the time of an MCP call goes, and says why."""


def _quiet_option() -> Any:
    """Builds the option ``--quiet``, which every command of the lab has."""
    own = typer.Typer(rich_markup_mode=None, add_completion=False)

    @own.command()
    def options(
        quiet: Annotated[
            bool,
            typer.Option("--quiet", "-q", help="No progress on stderr.", callback=_set_quiet, expose_value=False),
        ] = False,
    ) -> None: ...

    return typer.main.get_command(own).params[0]


def _set_quiet(is_requested: bool) -> None:
    if is_requested:
        silence_information()


def main() -> None:
    """Runs the command line."""
    if COMPLETE_VARIABLE in os.environ:  # a shell asks for completions
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    try:
        if sys.argv[1:2] != [SERVE] and sys.argv[1:2] and sys.argv[1] in SUMMARIES:
            from mcpace.lab.processes import interruption

            interruption.handle_signals()
    except KeyboardInterrupt:
        sys.exit(_report_error("interrupted", INTERRUPTED))
    app()


def _run_command(command: Callable[[], object]) -> int:
    """Runs ``command``, reports its error, and returns the exit code. Only faults of mcpace itself are raised."""
    from mcpace import _core
    from mcpace.server.running.errors import RunProblem

    try:
        command()
        flush_stdout()
    except RunProblem as error:
        from mcpace.server.running.runner import report_problem

        report_problem(error)
        return error.exit_code
    except _lab_error() as error:
        return _report_error(str(error), error.exit_code)
    except ModuleNotFoundError as error:
        if error.name not in EXTRA_OF:
            raise
        missing = (
            f"this command needs {error.name}, which is not installed: pip install 'mcpace[{EXTRA_OF[error.name]}]'"
        )
        return _report_error(missing, UNREACHABLE)
    except ImportError as error:
        package = _broken_package(error)
        if package is None:
            raise
        install = f"install what is missing, or 'mcpace[{EXTRA_OF[package]}]' anew"
        broken = f"{package} cannot be loaded ({_first_cause(error)}): {install}"
        return _report_error(broken, UNREACHABLE)
    except _core.UsageProblem as error:
        return _report_error(str(error), USAGE)
    except _core.Problem as error:
        return _report_error(str(error), UNREACHABLE)
    except KeyboardInterrupt:
        return _report_error("interrupted", INTERRUPTED)
    except BrokenPipeError:
        give_up_stdout()
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _report_error(f"{place}{error.strerror or error}", UNREACHABLE)
    return DONE


def _lab_error() -> type[Any]:
    """Base class of the lab's errors. Empty where the lab isn't loaded, since none can be raised then."""
    errors = sys.modules.get("mcpace.lab.errors")
    return errors.LabError if errors else ()  # type: ignore[return-value]


def _broken_package(error: ImportError) -> str | None:
    """The package of an extra in whose import the error was raised, such as for a library of the system."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    modules = {frame.f_globals.get("__name__", "").partition(".")[0] for frame in frames}
    return next((package for package in EXTRA_OF if package in modules), None)


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _report_error(sentence: str, code: int) -> int:
    note(sentence)
    return code
