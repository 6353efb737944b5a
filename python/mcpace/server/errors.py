"""Errors of a server: who caused them, and how much of them the client reads.

Design constraint: this module alone decides which part of an error leaves the server. The rules are the official SDK's:
the client reads an error that the author raised on purpose; a crash is logged, and the client reads only the name of
the component.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from mcpace.types import INTERNAL_ERROR, INVALID_PARAMS, URL_ELICITATION_REQUIRED, ErrorData, InputRequiredResult, wire

logger = logging.getLogger("mcpace.server")


class ServerError(Exception):
    """Base class of the errors that a server raises."""


class InvalidSignature(ServerError):
    """A function can't be registered as it is written. The message says what to change."""


class RegistrationError(ServerError, ValueError):
    """Something can't be registered: its name, its URI, its options. The message says what to change."""


class UnsupportedOption(ServerError, ValueError):
    """An option of the official SDK that mcpace doesn't have. The message says what to use instead."""


class ToolError(ServerError):
    """Raise it in a tool for a failure that you saw coming: the model reads the message."""


class UnexpectedToolError(ToolError):
    """A tool crashed. ``__cause__`` is the exception, which the message does not mention."""


class InvalidArguments(ToolError):
    """A call's arguments don't fit the schema. ``__cause__`` is pydantic's ``ValidationError``, and the message is its
    message."""


class ResourceError(ServerError):
    """Raise it while reading a resource for a failure that you saw coming: the client gets your message."""


class ResourceNotFoundError(ResourceError):
    """Raise it where there is no such resource."""


class UnexpectedResourceError(ResourceError):
    """Reading a resource crashed. ``__cause__`` is the exception; the message names the URI only."""


class MCPError(Exception):
    """A protocol error with the ``code``, ``message`` and ``data`` of the JSON-RPC error that answers the request."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.error = ErrorData(code=code, message=message, data=data)

    @property
    def code(self) -> int:
        """The JSON-RPC error code."""
        return self.error.code

    @property
    def message(self) -> str:
        """The error message."""
        return self.error.message

    @property
    def data(self) -> Any:
        """The additional data, if any."""
        return self.error.data

    def __str__(self) -> str:
        return self.message


class McpError(MCPError):
    """A protocol error with the constructor of mcp 1.x, which takes an ``ErrorData``."""

    def __init__(self, error: Any) -> None:
        super().__init__(error.code, error.message, error.data)


class UrlElicitationRequiredError(MCPError):
    """The user has to visit pages first (2025-11-25)."""

    def __init__(self, elicitations: Sequence[Any], message: str | None = None) -> None:
        self.elicitations = list(elicitations)
        plural = "s" if len(self.elicitations) > 1 else ""
        super().__init__(
            URL_ELICITATION_REQUIRED,
            message or f"URL elicitation{plural} required",
            {"elicitations": [wire(one) for one in self.elicitations]},
        )


class InputRequired(Exception):
    """Ends a handler's round with questions to the client. The runtime turns it into an ``input_required`` result."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("input required")
        self.result = result


def is_protocol_error(error: BaseException) -> bool:
    """Whether an exception is a protocol error: mcpace's, or the official SDK's ``MCPError`` (``McpError`` in 1.x)."""
    return isinstance(error, MCPError) or _is_foreign(error, "MCPError", "McpError")


def is_tool_error(error: BaseException) -> bool:
    """Whether an author raised the exception on purpose: mcpace's or another SDK's ``ToolError`` or
    ``ResourceError``."""
    return isinstance(error, ToolError | ResourceError) or _is_foreign(error, "ToolError", "ResourceError")


def _is_foreign(error: BaseException, *names: str) -> bool:
    roots = ("mcp", "fastmcp")
    return any(base.__name__ in names and base.__module__.partition(".")[0] in roots for base in type(error).__mro__)


def tool_exception(name: str, error: BaseException) -> BaseException:
    """The exception that a failed tool call raises. Protocol errors and questions to the client stay unchanged."""
    if isinstance(error, InputRequired) or is_protocol_error(error) or hasattr(error, "_asked"):
        # `_asked` marks a question that the client can't answer; the compiled part writes the error.
        return error
    if isinstance(error, UnexpectedToolError | UnexpectedResourceError):
        told: ToolError = UnexpectedToolError(f"Error executing tool {name}: {error}")
    elif is_tool_error(error):
        told = ToolError(f"Error executing tool {name}: {error}")
    else:
        told = UnexpectedToolError(f"Error executing tool {name}")
    told.__cause__ = error.__cause__ if isinstance(error, InvalidArguments) else error
    return told


def resource_exception(uri: str, error: Exception, doing: str = "reading resource") -> Exception:
    """The exception that a failed reading of a resource raises."""
    if isinstance(error, InputRequired | ResourceError) or is_protocol_error(error) or hasattr(error, "_asked"):
        return error
    if _is_foreign(error, "ResourceError"):
        missing = _is_foreign(error, "ResourceNotFoundError")
        told: ResourceError = (ResourceNotFoundError if missing else ResourceError)(str(error))
    else:
        told = UnexpectedResourceError(f"Error {doing} {uri}")
    told.__cause__ = error
    return told


def resource_answer(uri: str, error: ResourceError) -> MCPError:
    """The protocol error that answers a failed reading. A crash is logged."""
    if isinstance(error, UnexpectedResourceError):
        logger.error("Resource %r raised an unexpected exception", uri, exc_info=error)
    else:
        logger.info("Resource %r failed: %r", uri, str(error))
    code = INVALID_PARAMS if isinstance(error, ResourceNotFoundError) else INTERNAL_ERROR
    return MCPError(code, str(error), {"uri": uri})


def log_tool_failure(name: str, error: BaseException) -> None:
    """Logs a tool's failure: a crash with its traceback, any other failure in one line."""
    if isinstance(error, ToolError) and not isinstance(error, UnexpectedToolError):
        errors = getattr(error.__cause__, "errors", None)
        if callable(errors):
            # Only the names of the fields are logged: the values belong to the caller.
            fields = sorted({".".join(str(part) for part in one["loc"]) for one in errors()})
            logger.info("Tool %r rejected arguments: %r", name, fields)
        else:
            logger.info("Tool %r failed: %r", name, str(error))
    else:
        logger.error("Tool %r raised an unexpected exception", name, exc_info=error)
