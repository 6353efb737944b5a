"""Files that users name, read whole: each has a bound, since any of them may be a device or a pipe without end."""

from __future__ import annotations

from pathlib import Path

from mcpace.lab.errors import UsageProblem


def read_text(path: Path, what: str, most: int) -> str:
    """The text of a UTF-8 file of ``most`` bytes at most; ``what`` it is, for the message.

    Raises :class:`UsageProblem` where it can't be read, is larger, or is no text.
    """
    try:
        with path.open("rb") as file:
            read = file.read(most + 1)
        text = read.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise UsageProblem(f"cannot read {what} {path}: {reason}") from error
    if len(read) > most:
        raise UsageProblem(f"cannot read {what} {path}: it has more than {most:,} bytes")
    return text
