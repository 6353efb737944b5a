"""Writes a manual page for mcpace and for each of its commands into a folder, from the commands' own definitions.

Usage: manual_pages.py FOLDER. `man -l FOLDER/mcpace-measure.1` shows a page.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from mcpace import __version__
from mcpace.cli.commands import COMMANDS, SUMMARIES, app

EXIT_CODES = (
    "0 done; 1 a limit was hit (`--fail-on`, `--threshold`, a red `gate`, `migrate --check`); 2 wrong usage; "
    "3 the target or a required program could not be reached or set up; 4 `gate` is inconclusive; 130 interrupted, "
    "with the results so far saved and marked partial"
)


def main() -> None:
    """Writes the pages."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"wrote the manual pages to {folder}", file=sys.stderr)


def pages() -> dict[str, str]:
    """The text of each page, by file name."""
    group: Any = typer.main.get_command(app)
    parent = typer.Context(group, info_name="mcpace", help_option_names=["-h", "--help"])
    commands = [f"{entry('mcpace-' + name + '(1)')}\n{roff(SUMMARIES[name])}" for name in COMMANDS]
    found = {"mcpace.1": page("mcpace", group.help, group, parent, [section("COMMANDS", commands)])}
    for name in COMMANDS:
        command = group.get_command(parent, name)
        context = typer.Context(command, info_name=name, parent=parent, help_option_names=["-h", "--help"])
        found[f"mcpace-{name}.1"] = page(f"mcpace-{name}", SUMMARIES[name], command, context, [])
    return found


def page(title: str, summary: str, command: Any, context: typer.Context, more: list[str]) -> str:
    """One page."""
    usage = context.get_usage().removeprefix("Usage:").strip()
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(command.help or ""))
    options: list[str] = []
    arguments: list[str] = []
    for param in command.get_params(context):
        if record := param.get_help_record(context):
            rows = options if param.opts[0].startswith("-") else arguments
            rows.append(f"{entry(record[0])}\n{roff(record[1])}")
    parts = [
        f'.TH "{roff(title.upper())}" 1 "" "mcpace {__version__}" "mcpace"',
        section("NAME", [f"{roff(title)} \\- {roff(summary.rstrip('.'))}"]),
        section("SYNOPSIS", [roff(usage)]),
        section("DESCRIPTION", ["\n.PP\n".join(roff(" ".join(text.split())) for text in paragraphs)]),
        section("ARGUMENTS", arguments) if arguments else "",
        section("OPTIONS", options),
        *more,
        section("EXIT STATUS", [roff(EXIT_CODES.replace("`", "") + ".")]),
    ]
    return "\n".join(part for part in parts if part) + "\n"


def section(title: str, parts: Iterable[str]) -> str:
    """A section with its heading."""
    return "\n".join([f".SH {title}", *parts])


def entry(text: str) -> str:
    """The head of an entry in a list, in bold."""
    return f".TP\n\\fB{roff(text)}\\fR"


def roff(text: str) -> str:
    """Text in which no character is a request or an escape."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return re.sub(r"(?m)^([.'])", r"\\&\1", escaped)


if __name__ == "__main__":
    main()
