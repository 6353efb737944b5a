"""``mcpace completion``: prints the completion script of a shell."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from mcpace.cli.commands import COMPLETE_VARIABLE

Shell = StrEnum("Shell", ["bash", "zsh", "fish"])


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("completion")(completion)


def completion(shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell.")]) -> None:
    """Print a script that completes commands and options in a shell.

    bash: eval "$(mcpace completion bash)" in ~/.bashrc. zsh: eval "$(mcpace completion zsh)" in ~/.zshrc. fish:
    mcpace completion fish > ~/.config/fish/completions/mcpace.fish.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    typer.echo(get_completion_script(prog_name="mcpace", complete_var=COMPLETE_VARIABLE, shell=shell.value))
