"""Reads files that users name. Each read is bounded, since the file may be a device or an endless pipe."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from mcpace.lab.errors import UsageProblem
from mcpace.system.files import open_file


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8. Arguments and variables that are not UTF-8, and JSON with half of a
    surrogate pair, cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def read_text(path: Path, what: str, most: int) -> str:
    """Returns the text of a UTF-8 file of at most ``most`` bytes. ``what`` describes the file in messages.

    Raises :class:`UsageProblem` where the file can't be read, is larger, or is not text.
    """
    try:
        with os.fdopen(open_file(path, os.O_RDONLY, follow_links=True), "rb") as file:
            # Reading would wait for a program that writes to the pipe.
            if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                raise UsageProblem(f"cannot read {what} {path}: it is a pipe, not a file")
            read = file.read(most + 1)
        text = read.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise UsageProblem(f"cannot read {what} {path}: {reason}") from error
    if len(read) > most:
        raise UsageProblem(f"cannot read {what} {path}: it has more than {most:,} bytes")
    return text


def refuse_pipe(path: Path) -> None:
    """Raises :class:`UsageProblem` for a pipe: reading it would wait for a program that writes to it."""
    try:
        is_pipe = stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return  # the reader reports it
    if is_pipe:
        raise UsageProblem(f"cannot read {path}: it is a pipe; save its content in a file, and name that file")


def files_below(folder: Path, endings: tuple[str, ...]) -> Iterator[Path]:
    """The files below a folder whose names have one of these endings. Links are not followed.

    Raises :class:`UsageProblem` where a folder can't be read.
    """

    def fail(error: OSError) -> None:
        raise UsageProblem(f"cannot read {error.filename}: {error.strerror}") from error

    for place, _, names in os.walk(folder, onerror=fail):
        for name in names:
            path = Path(place, name)
            if name.endswith(endings) and path.is_file() and not path.is_symlink():
                yield path
