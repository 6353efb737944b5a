"""What the runner tells people: lines on stderr, beside the log. stdout belongs to the protocol, or to nobody."""

from __future__ import annotations

import contextlib
import sys


def say(sentence: str) -> None:
    """One line that begins with our name. Without a stderr there is nobody to tell."""
    line(f"mcpace: {sentence}")


def line(text: str) -> None:
    """One line as it is; whatever a name in it could do to a terminal is made visible in the place of done."""
    write("".join(char if char.isprintable() else ascii(char)[1:-1] for char in text) + "\n")


def write(text: str) -> None:
    """As it is, line feeds and all."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
