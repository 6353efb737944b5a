"""Notes of commands on stderr, one sentence each, and the handling of a closed stdout."""

from __future__ import annotations

import contextlib
import os
import sys

from mcpace.report.words.quantities import clean

LONGEST = 2_000
_is_quiet = False


def silence_information() -> None:
    """Suppresses progress and :func:`inform` for the rest of the process."""
    global _is_quiet
    _is_quiet = True


def is_quiet() -> bool:
    """Whether the user wants no progress."""
    return _is_quiet


def inform(sentence: str) -> None:
    """Prints a note about a success, unless the user wants no progress."""
    if not _is_quiet:
        note(sentence)


def note(sentence: str) -> None:
    """Prints ``sentence`` on stderr, without control characters, which may come from a peer."""
    if sys.stderr is None:  # closed; print() would take stdout instead
        return
    with contextlib.suppress(OSError):
        print(f"mcpace: {clean(sentence, LONGEST)}", file=sys.stderr, flush=True)


def flush_stdout() -> None:
    """Flushes stdout. Raises :class:`BrokenPipeError` here instead of at exit, if the reader has closed the pipe."""
    if sys.stdout is not None:
        sys.stdout.flush()


def give_up_stdout() -> None:
    """Redirects stdout to the null device, so that the interpreter's flush at exit doesn't fail."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
