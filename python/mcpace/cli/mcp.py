"""``mcpace mcp``: serves the lab as MCP tools over stdio, for agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("mcp")(mcp)


def mcp(
    allow: Annotated[
        list[str],
        typer.Option(
            "--allow",
            metavar="TARGET",
            help="Allow this target, too: a URL, stdio:COMMAND, serve:COMMAND or MODULE:SERVER. Repeatable.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A host's mcp.json; allow the servers that it names, too.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before programs are started and tools are called.")
    ] = False,
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Tools may read recordings, runs and configurations below it.")
    ] = Path(),
    reports: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of the reports, private to you. [default: in mcpace's cache]"),
    ] = None,
) -> None:
    """Serve the lab as MCP tools over stdio: measure, explain, load, compare, check a configuration.

    Tools connect to this machine's own addresses and to allowed targets. Before a tool starts a program or calls tools
    of a server, the client asks its user.
    """
    from mcpace.lab.errors import UsageProblem
    from mcpace.lab.requirements import missing_modules
    from mcpace.lab_tools.file_access import FileAccess
    from mcpace.lab_tools.lab_process import LabProcess
    from mcpace.lab_tools.report_folder import default_report_folder, open_report_folder
    from mcpace.lab_tools.server import LabTools
    from mcpace.lab_tools.target_access import TargetAccess

    if missing := missing_modules("lab"):
        # The experiments run in processes of their own: without this check, each tool would fail when it is called.
        raise ModuleNotFoundError(name=missing[0])
    if not folder.is_dir():
        raise UsageProblem(f"--folder: {folder} is not a folder")
    place = open_report_folder(reports or default_report_folder())
    tools = LabTools(
        targets=TargetAccess(allow, config),
        files=FileAccess(folder, place),
        process=LabProcess(folder.resolve()),
        reports=place,
        is_allowed=yes,
    )
    tools.server.run("stdio")
