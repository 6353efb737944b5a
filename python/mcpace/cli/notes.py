"""One sentence on stderr, the only way in which commands talk beside their output; and the end of that output."""

from __future__ import annotations

import contextlib
import os
import sys

from mcpace.report.words.quantities import clean

LONGEST = 2_000
_is_quiet = False


def silence_information() -> None:
    """Leaves out progress and :func:`inform`, for the rest of the process."""
    global _is_quiet
    _is_quiet = True


def is_quiet() -> bool:
    """Whether the user wants no progress."""
    return _is_quiet


def inform(sentence: str) -> None:
    """Says what went well, unless the user wants no progress."""
    if not _is_quiet:
        note(sentence)


def note(sentence: str) -> None:
    """Says ``sentence``, with whatever a peer put into it made harmless. Without a stderr there is nobody to tell."""
    if sys.stderr is None:  # closed; print() would take stdout instead
        return
    with contextlib.suppress(OSError):
        print(f"mcpace: {clean(sentence, LONGEST)}", file=sys.stderr, flush=True)


def flush_stdout() -> None:
    """Raises :class:`BrokenPipeError` here rather than at exit, where whoever read our output has seen enough."""
    if sys.stdout is not None:
        sys.stdout.flush()


def give_up_stdout() -> None:
    """What is still to be printed goes nowhere, so that the interpreter has nothing to complain about at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
