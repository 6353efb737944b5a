"""Options shared by several commands, and the parsers of their values."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mcpace import _core
from mcpace.cli.times import parse_seconds
from mcpace.lab.clients.plan import DEFAULT_HOLD_S, DEFAULT_TIME_LIMIT_S, DEFAULT_TRIALS
from mcpace.lab.clients.repeats import DEFAULT_CALLS
from mcpace.lab.errors import UsageProblem
from mcpace.lab.targets import Target, Tool


def parse_limit(text: str) -> float:
    """Parses a time limit, like :func:`parse_seconds`, but refuses zero."""
    value = parse_seconds(text)
    if value == 0:
        raise typer.BadParameter("a limit of no time at all lets nothing happen: write 10s or 1m")
    return value


Trials = Annotated[
    int, typer.Option(help="Sessions, each a trial of every operation. The first one is cold.", min=1, max=1000)
]
Calls = Annotated[
    int, typer.Option(help="Lists and calls of each session. The first one is shown separately.", min=1, max=10_000)
]
Hold = Annotated[
    float,
    typer.Option(
        parser=parse_seconds, metavar="TIME", help="How long profile:notion keeps a stream open after the result."
    ),
]
Fault = Annotated[
    list[str], typer.Option("--fault", metavar="KIND=SIZE", help="Inject a fault into profiles, e.g. tool=10ms.")
]
Timeout = Annotated[float, typer.Option(parser=parse_limit, metavar="TIME", help="Limit of each operation.")]
Port = Annotated[
    int, typer.Option("--port", "-p", help="Port on loopback to listen on; 0 picks a free one.", min=0, max=65535)
]
Inside = Annotated[
    bool,
    typer.Option(
        "--inside",
        help="Look into the server that mcpace starts: the requests that it makes, and its stacks.",
    ),
]
Pid = Annotated[
    int | None,
    typer.Option(
        "--pid",
        metavar="PID",
        help="Look into the process PID (Python, Node.js, Java) that serves the target's URL: its stacks, by samples.",
        min=1,
    ),
]
Python = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH", help="For MODULE:SERVER: the interpreter whose environment has the server. [default: this one]"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the run as JSON on stdout, and nothing else.")]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", dir_okay=False, help="Write the run as JSON to FILE.")
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", dir_okay=False, help="Write the report as one offline HTML file."),
]
Recordings = Annotated[
    Path | None,
    typer.Option(
        "--recordings", metavar="FOLDER", help="Keep the recordings in FOLDER, one file for each subject and target."
    ),
]
Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A host's mcp.json; its servers' names can be used as targets.")
]
Header = Annotated[
    list[str],
    typer.Option(
        "--header",
        metavar="NAME: VALUE",
        help="A header of each HTTP request; $VARIABLE is an environment variable. Repeatable.",
    ),
]
ToolName = Annotated[str | None, typer.Option("--tool", help="The tool to call.")]
ToolArguments = Annotated[
    str | None, typer.Option("--args", metavar="JSON", help="Arguments of the tool, a JSON object.")
]
Authentication = Annotated[
    str | None,
    typer.Option("--auth", metavar="none|bearer|oauth", help="How to authenticate; bearer reads MCPACE_TOKEN."),
]
Revision = Annotated[str | None, typer.Option(help="Protocol revision, e.g. 2025-06-18. [default: negotiated]")]
Cacert = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="PEM file with further certificates to trust: the CA's or the server's own."),
]
FailOn = Annotated[
    list[str],
    typer.Option(
        "--fail-on", metavar="CODE", help="Exit with 1 where this finding is reported; 'any' for all. Repeatable."
    ),
]

TRIALS = DEFAULT_TRIALS
CALLS = DEFAULT_CALLS
# Typer parses defaults with the option's parser too, so they are written like arguments.
HOLD: Any = f"{DEFAULT_HOLD_S:g}s"
TIMEOUT: Any = f"{DEFAULT_TIME_LIMIT_S:g}s"


def is_default(context: typer.Context, option: str) -> bool:
    """Whether neither the command line nor a settings file gives an option."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "DEFAULT"


def chosen_tool(name: str | None, arguments: str | None) -> Tool | None:
    """Converts ``--tool`` and ``--args`` to a call.

    Raises :class:`UsageProblem` where the arguments are not a JSON object, or no tool is named.
    """
    if arguments is None:
        return None if name is None else Tool(name)
    if name is None:
        raise UsageProblem("--args needs --tool: which tool takes these arguments?")
    try:
        value = json.loads(arguments, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UsageProblem(f"--args is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageProblem(f'--args must be a JSON object, as in \'{{"text": "hi"}}\', not {type(value).__name__}')
    return Tool(name, value)


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"it has no {constant}")


def checked_faults(words: list[str], places: Sequence[Target]) -> tuple[str, ...]:
    """Checks ``--fault`` for these targets.

    Raises :class:`UsageProblem` for an unknown fault, and for a target that is not a profile.
    """
    try:
        _core.check_faults(words)
    except _core.UsageProblem as error:
        raise UsageProblem(f"--fault: {error}") from error
    strangers = [place.name for place in places if place.profile is None]
    if words and strangers:
        raise UsageProblem(f"--fault works on profiles only, and {strangers[0]} is not a profile")
    return tuple(words)


def checked_revision(text: str | None) -> str | None:
    """Checks ``--revision``.

    Raises :class:`UsageProblem` for an unknown revision.
    """
    if text is not None and text not in _core.REVISIONS:
        raise UsageProblem(f"there is no revision {text!r}; there are {', '.join(_core.REVISIONS)}")
    return text


def is_file(target: str) -> bool:
    """Whether a target's name is the path of a file."""
    return _is_place(target, Path.is_file)


def is_folder(target: str) -> bool:
    """Whether a target's name is the path of a folder."""
    return _is_place(target, Path.is_dir)


def _is_place(target: str, is_kind: Callable[[Path], bool]) -> bool:
    if target.startswith(("http://", "https://", "stdio:", "serve:", "profile:")):
        return False
    try:
        return is_kind(Path(target))
    except (OSError, ValueError):  # longer than any file's name, say
        return False


def checked_authentication(text: str | None) -> Any:
    """Checks ``--auth``.

    Raises :class:`UsageProblem` for any other word.
    """
    if text not in (None, "none", "bearer", "oauth"):
        raise UsageProblem(f"--auth takes none, bearer or oauth, not {text!r}")
    return text


def check_inside(inside: bool, pid: int | None, target: Target) -> None:
    """Raises :class:`LabError` where mcpace can't look into the server."""
    if inside and pid is not None:
        raise UsageProblem("--inside is about a program that mcpace starts, and --pid about one that runs: give one")
    if inside and not (target.command or target.program):
        raise UsageProblem(
            f"--inside looks into a server that mcpace starts, and {target.name} is none: name its command "
            "(serve:COMMAND, stdio:COMMAND or MODULE:SERVER), or give --pid where it runs on this machine"
        )
    if pid is not None and target.url is None:
        raise UsageProblem(f"--pid needs a target with a URL that the process serves; {target.name} has none")
    if pid is not None and target.program is not None:
        raise UsageProblem(f"mcpace starts {target.name} itself: give --inside in the place of --pid")
    if pid is not None:
        # Imported late, since few commands need it, and load starts its first request before most imports.
        from mcpace.lab.inside.running_process import check_process

        check_process(pid, target.url or "")


def interpreter_path(path: Path | None) -> str:
    """Path of the interpreter, without resolving links: a virtual environment is identified by the link's location.

    Raises :class:`UsageProblem` where there is no such program.
    """
    if path is None:
        return sys.executable
    found = shutil.which(str(path))
    if found is None:
        raise UsageProblem(f"--python: there is no program {path}")
    return str(Path.cwd() / found)
