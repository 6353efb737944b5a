"""``mcpace check``: how the servers of a host's configuration start, and how many tokens their tools take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mcpace.cli import options
from mcpace.cli.notes import inform, note
from mcpace.cli.output import check_codes, deliver_run
from mcpace.cli.progress import show_progress
from mcpace.lab.defaults import CHECK_CALLS, CHECK_ROUNDS, CHECK_SLOW_ROUND_S, CHECK_TIME_LIMIT_S

TIMEOUT: Any = f"{CHECK_TIME_LIMIT_S:g}s"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("check")(check)


def check(
    configurations: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[CONFIG]...",
            help="Configuration files of hosts. [default: yours for Claude Code, Claude Desktop, Cursor, VS Code, "
            "Codex and Gemini CLI, without those of the current folder]",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help=f"Rounds, each with all servers at once and one by one. [default: {CHECK_ROUNDS}, or 1 if a "
            f"round takes longer than {CHECK_SLOW_ROUND_S:g} s]",
            min=1,
            max=50,
        ),
    ] = None,
    calls: options.Calls = CHECK_CALLS,
    waterfall: Annotated[
        bool, typer.Option("--waterfall", help="Print the parts of each start, and the largest tools.")
    ] = False,
    cold: Annotated[
        bool,
        typer.Option(
            "--cold",
            help="Also start servers of npx and uvx with empty caches, in temporary folders: all is downloaded anew.",
        ),
    ] = False,
    timeout: options.Timeout = TIMEOUT,
    fail_on: options.FailOn = [],  # noqa: B006 - typer copies it
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Start every server that a host would start, and show what each costs: start-up, first list, a call, tokens.

    Every command of the configuration is run, as the host runs it. Only tools that a server marks read-only are called.
    Exit code 3 if a server fails.
    """
    from mcpace.lab import journal
    from mcpace.lab.check import run_check as lab
    from mcpace.lab.check.servers import read_servers
    from mcpace.lab.host_files import project_configurations
    from mcpace.report.words.quantities import join_words

    check_codes(fail_on)
    checked = read_servers(configurations or [])
    if not configurations and (left_out := project_configurations(Path.cwd())):
        names = join_words([str(path.relative_to(Path.cwd())) for path in left_out])
        inform(
            f"not started, since the current folder may be a stranger's: the servers of {names}; name the file to check"
        )
    for problem in checked.problems:
        note(f"left out: {problem}")
    with show_progress() as display, journal.record_progress(display, out, "check", "configuration") as progress:
        run = lab.run(checked, rounds, calls, timeout, progress, cold=cold)
    run.options["waterfall"] = waterfall
    deliver_run(run, as_json=as_json, out=out, page=html, fail_on=fail_on)
