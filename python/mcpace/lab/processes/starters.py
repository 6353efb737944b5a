"""Words in front of a server's command that start it in another way: in a folder, or with its stderr elsewhere.

Messages about a process name the first program of its command. A reader knows the server's own program.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

FOLDER = ("env", "-C")
"""The words before the folder and the command."""
REDIRECTION = ("sh", "-c", 'exec "$@" 2>"$0"')
"""The words before the path of a file and the command. The shell reads only this constant script."""


def start_in_folder(command: Sequence[str], folder: Path) -> tuple[str, ...]:
    """The command that starts ``command`` in a folder."""
    return (*FOLDER, str(folder), *command)


def redirect_stderr(command: Sequence[str], file: Path) -> tuple[str, ...]:
    """The command that starts ``command`` with its stderr in a file."""
    return (*REDIRECTION, str(file), *command)


def name_started_program(message: str, command: Sequence[str]) -> str:
    """``message`` about the end of the process of ``command``, with the name of the program that the words started."""
    if not command:
        return message
    return message.replace(
        f'the server process "{command[0]}" ended', f'the server process "{started_program(command)}" ended'
    )


def started_program(command: Sequence[str]) -> str:
    """Name of the program that the words in front of it start; the first one where there are no such words."""
    own = tuple(command)
    for words in (REDIRECTION, FOLDER):
        if own[: len(words)] == words:
            own = own[len(words) + 1 :]
    return Path((own or tuple(command))[0]).name
