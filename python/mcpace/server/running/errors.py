"""Errors of running a server, classified by whose fault they are.

Each class carries the exit code of the command line; the message is one sentence that says what happened, to what, and
what to do. An exception of the author's code is shown as a traceback (:mod:`.tracebacks`).
"""

from __future__ import annotations

from typing import ClassVar

EXIT_DONE = 0
EXIT_USAGE = 2
EXIT_SETUP = 3
EXIT_INTERRUPTED = 130


class RunProblem(Exception):
    """Base class: an error that is reported by one sentence and an exit code."""

    exit_code: ClassVar[int] = EXIT_SETUP


class UsageProblem(RunProblem):
    """Invalid usage: an unknown target, an invalid option, or options that contradict each other."""

    exit_code = EXIT_USAGE


class SetupProblem(RunProblem):
    """The setup failed: a port in use, an unreadable certificate, a missing package."""


class AuthorProblem(RunProblem):
    """The author's code raised, while it was imported or in its lifespan. Only the author's frames are shown. ``cause``
    is the exception; ``doing`` names the step that failed.
    """

    def __init__(self, doing: str, cause: BaseException) -> None:
        super().__init__(doing)
        self.doing = doing
        self.cause = cause
