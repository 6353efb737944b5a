"""What goes wrong, in one sentence each, told apart by whose it is."""

from __future__ import annotations

USAGE = "usage"
"""What was asked for doesn't exist: module, object, tool, arguments."""
SETUP = "setup"
"""The server can't be loaded, served or reached; a tool that fails."""


class Problem(Exception):
    """A sentence for the user."""

    def __init__(self, kind: str, sentence: str, known: list[str] | None = None) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.known = known
        """Names that there are, where one was asked for that there isn't."""


class Unmeasured(Problem):
    """A layer that can't be had; the others can."""

    def __init__(self, sentence: str) -> None:
        super().__init__(SETUP, sentence)


def named(error: BaseException) -> str:
    """An exception in one line: ``ValueError: no such invoice``."""
    told = " ".join(str(error).split())
    return f"{type(error).__name__}: {told[:300]}" if told else type(error).__name__


def unknown_tool(name: str, known: list[str]) -> Problem:
    """The server has no such tool; none was named."""
    if not name:
        return Problem(USAGE, "no tool was named", known)
    return Problem(USAGE, f"the server has no tool {name!r}", known)


def wrong_arguments(name: str, why: object) -> Problem:
    """The tool doesn't take these."""
    told = _refusal(why) if isinstance(why, BaseException) else " ".join(str(why).split())[:300]
    return Problem(USAGE, f"the tool {name!r} does not take these arguments: {told}")


def _refusal(error: BaseException) -> str:
    """pydantic's first complaint, where it is pydantic's: ``n: Field required``."""
    for one in (error, error.__cause__):
        complaints = getattr(one, "errors", None)
        if callable(complaints):
            first = complaints()[0]
            return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return named(error)


def failed(name: str, layer: str, why: object) -> Problem:
    """The tool failed in a layer."""
    told = named(why) if isinstance(why, BaseException) else " ".join(str(why).split())[:300]
    return Problem(SETUP, f"the tool {name!r} failed ({layer}): {told}")


def missing(sdk: str, version: str, what: BaseException) -> Unmeasured:
    """A function of the SDK's that a probe calls isn't there in this release."""
    return Unmeasured(f"{sdk} {version} is not as mcpace layers knows it: {named(what)}")
