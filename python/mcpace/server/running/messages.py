"""The runner's messages to people: lines on stderr, beside the log. Stdout belongs to the protocol."""

from __future__ import annotations

import contextlib
import sys


def say(sentence: str) -> None:
    """Writes one line that begins with ``mcpace``. Does nothing without a stderr."""
    line(f"mcpace: {sentence}")


def line(text: str) -> None:
    """Writes one line. Control characters, which names may contain, are written visibly, so that a terminal ignores
    them."""
    write("".join(char if char.isprintable() else ascii(char)[1:-1] for char in text) + "\n")


def write(text: str) -> None:
    """Writes text unchanged, including line feeds."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
