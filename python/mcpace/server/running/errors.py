"""What can go wrong in running a server, told apart by whose fault it is.

Each class carries the exit code of the command line; the message is one sentence that says what happened, to what, and
what to do. What the author's own code raised is no sentence but a traceback: see :mod:`.tracebacks`.
"""

from __future__ import annotations

from typing import ClassVar

EXIT_DONE = 0
EXIT_USAGE = 2
EXIT_SETUP = 3
EXIT_INTERRUPTED = 130


class RunProblem(Exception):
    """Anything that ends in one sentence and an exit code."""

    exit_code: ClassVar[int] = EXIT_SETUP


class UsageProblem(RunProblem):
    """What was asked for makes no sense: a target, an option, two that don't go together."""

    exit_code = EXIT_USAGE


class SetupProblem(RunProblem):
    """What was asked for could not be set up: a port in use, a certificate that can't be read, a package that is
    missing."""


class AuthorProblem(RunProblem):
    """The author's own code raised, while it was imported or in its lifespan. The traceback is theirs alone.

    ``cause`` is the exception; ``doing`` says what was under way.
    """

    def __init__(self, doing: str, cause: BaseException) -> None:
        super().__init__(doing)
        self.doing = doing
        self.cause = cause
