"""FastMCP's exceptions. ``ToolError`` and ``ResourceError`` are those of :mod:`mcpace.server.errors`."""

from __future__ import annotations

from mcpace.server.errors import MCPError, ResourceError, ToolError
from mcpace.types import INTERNAL_ERROR, INVALID_PARAMS


class FastMCPError(Exception):
    """Base of the errors whose message is sent to the client."""


class ValidationError(FastMCPError):
    """Parameters or returned values don't fit."""


class PromptError(FastMCPError):
    """An exception for expected failures of a prompt."""


class NotFoundError(Exception):
    """The tool, resource or prompt does not exist."""


class DisabledError(Exception):
    """The component is disabled."""


TOLD = (FastMCPError, ToolError, ResourceError)
"""Errors whose message is sent to the client unchanged."""


def protocol_error(error: Exception, words: str, masks: bool) -> MCPError:
    """The protocol error that answers a failed reading or prompt."""
    if isinstance(error, TOLD) or _is_foreign(error):
        code = INVALID_PARAMS if type(error).__name__ == "ValidationError" else INTERNAL_ERROR
        return MCPError(code, str(error))
    if isinstance(error, NotFoundError | DisabledError):
        return MCPError(INVALID_PARAMS, str(error))
    return MCPError(INTERNAL_ERROR, words if masks else f"{words}: {error}")


def has_public_message(error: BaseException) -> bool:
    """Whether an error's message is sent unchanged, because it is one of this package's errors or of FastMCP's own."""
    return isinstance(error, TOLD) or _is_foreign(error)


def _is_foreign(error: BaseException) -> bool:
    return any(
        base.__name__ == "FastMCPError" and base.__module__.startswith("fastmcp.") for base in type(error).__mro__
    )
