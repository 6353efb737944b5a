"""Problems of a measurement, each with one sentence for the user, classified by whose fault they are."""

from __future__ import annotations

USAGE = "usage"
"""The requested module, object or tool doesn't exist, or the arguments are wrong."""
SETUP = "setup"
"""The server can't be loaded, served or reached, or a tool fails."""


class Problem(Exception):
    """A problem with a message for the user."""

    def __init__(self, kind: str, sentence: str, known: list[str] | None = None) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.known = known
        """Existing names, where the requested name doesn't exist."""


class Unmeasured(Problem):
    """A layer that can't be measured. The other layers are unaffected."""

    def __init__(self, sentence: str) -> None:
        super().__init__(SETUP, sentence)


def describe_error(error: BaseException) -> str:
    """Describes an exception in one line: ``ValueError: no such invoice``."""
    told = " ".join(str(error).split())
    return f"{type(error).__name__}: {told[:300]}" if told else type(error).__name__


def unknown_tool(name: str, known: list[str]) -> Problem:
    """Problem: the server lacks the tool, or no tool was named."""
    if not name:
        return Problem(USAGE, "no tool was named", known)
    return Problem(USAGE, f"the server has no tool {name!r}", known)


def wrong_arguments(name: str, why: object) -> Problem:
    """Problem: the tool doesn't accept the arguments."""
    told = _refusal(why) if isinstance(why, BaseException) else " ".join(str(why).split())[:300]
    return Problem(USAGE, f"the tool {name!r} does not take these arguments: {told}")


def _refusal(error: BaseException) -> str:
    """First message of a pydantic error (``n: Field required``); else a description of the exception."""
    for one in (error, error.__cause__):
        complaints = getattr(one, "errors", None)
        if callable(complaints):
            first = complaints()[0]
            return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return describe_error(error)


def tool_failure(name: str, layer: str, why: object) -> Problem:
    """Problem: the tool failed in a layer."""
    told = describe_error(why) if isinstance(why, BaseException) else " ".join(str(why).split())[:300]
    return Problem(SETUP, f"the tool {name!r} failed ({layer}): {told}")


def missing_function(sdk: str, version: str, what: BaseException) -> Unmeasured:
    """Problem: this release of the SDK lacks a function that the probe calls."""
    return Unmeasured(f"{sdk} {version} is not as mcpace layers knows it: {describe_error(what)}")
