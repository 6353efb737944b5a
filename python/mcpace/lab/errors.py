"""Errors of the lab, classified by whose fault they are.

Each class carries the exit code of the command line and a stable code. The message is one sentence: the event, the
object that it happened to, and the remedy.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

EXIT_USAGE = 2
EXIT_UNREACHABLE = 3


class LabError(Exception):
    """Base class of errors that the lab reports in one sentence instead of a traceback."""

    exit_code: ClassVar[int] = EXIT_UNREACHABLE
    code: ClassVar[str] = "lab"


class UsageProblem(LabError):
    """The user asked for something that doesn't exist: a name, a version, a mode."""

    exit_code = EXIT_USAGE
    code = "usage"


class UnknownName(UsageProblem):
    """A name that isn't known. The message suggests the most similar known names."""

    code = "unknown-name"

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = list(known)
        self.nearest = nearest_names(name, self.known)
        super().__init__(f"unknown {kind} {name!r}{suggestion(self.nearest, self.known)}")


class Unreachable(LabError):
    """The target doesn't answer, or isn't an MCP server."""

    code = "unreachable"


class AdapterProblem(LabError):
    """An adapter's folder or its adapter.toml can't be used."""

    code = "adapter"


class ReleasesProblem(LabError):
    """The package index couldn't be read and no earlier answer is kept."""

    code = "releases"


class EnvironmentProblem(LabError):
    """A release couldn't be installed, or doesn't import once it is."""

    code = "environment"


class Unsupported(LabError):
    """This version lacks the requested feature. Reports show it as unsupported, never as a failure."""

    code = "unsupported"


class ProgramProblem(LabError):
    """An adapter's program broke the process contract."""

    code = "program"


class ProgramDied(ProgramProblem):
    """The program exited, or couldn't be started."""

    code = "program-died"


class ProgramHung(ProgramProblem):
    """The program didn't answer within the time limit, and was killed."""

    code = "program-hung"


class ProgramRubbish(ProgramProblem):
    """The program wrote something on stdout that is not a valid answer, and was killed."""

    code = "program-rubbish"


def tool_error_text(result: Mapping[str, Any]) -> str:
    """Text of a tool result that is an error, cut to 300 characters."""
    content = result.get("content") or []
    texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return (" ".join(texts) or json.dumps(content))[:300]


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names most like `name`, best first."""
    return difflib.get_close_matches(name.lower(), list(known), n=count, cutoff=0.5)


def suggestion(near: list[str], known: list[str]) -> str:
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; known: {', '.join(known)}" if known else ""
