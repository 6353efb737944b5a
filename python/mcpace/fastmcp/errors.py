"""FastMCP's exceptions. ``ToolError`` and ``ResourceError`` are those of :mod:`mcpace.server.errors`."""

from __future__ import annotations

from mcpace.server.errors import MCPError, ResourceError, ToolError
from mcpace.types import INTERNAL_ERROR, INVALID_PARAMS


class FastMCPError(Exception):
    """Base of the errors whose message a client is told."""


class ValidationError(FastMCPError):
    """Parameters or returned values don't fit."""


class PromptError(FastMCPError):
    """Raise it in a prompt for a failure that you saw coming."""


class NotFoundError(Exception):
    """There is no such tool, resource or prompt."""


class DisabledError(Exception):
    """It is disabled."""


TOLD = (FastMCPError, ToolError, ResourceError)
"""Errors whose message is told as it is."""


def protocol_error(error: Exception, words: str, masks: bool) -> MCPError:
    """The protocol error that a failed reading or prompt is answered with."""
    if isinstance(error, TOLD) or _is_foreign(error):
        code = INVALID_PARAMS if type(error).__name__ == "ValidationError" else INTERNAL_ERROR
        return MCPError(code, str(error))
    if isinstance(error, NotFoundError | DisabledError):
        return MCPError(INVALID_PARAMS, str(error))
    return MCPError(INTERNAL_ERROR, words if masks else f"{words}: {error}")


def is_told(error: BaseException) -> bool:
    """Whether an error's message is told as it is: of ours, or of FastMCP's own."""
    return isinstance(error, TOLD) or _is_foreign(error)


def _is_foreign(error: BaseException) -> bool:
    return any(
        base.__name__ == "FastMCPError" and base.__module__.startswith("fastmcp.") for base in type(error).__mro__
    )
