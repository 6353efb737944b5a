"""Conversion of exceptions that handlers raise into answers: protocol errors, or results that report the failure.

Design constraint: an unexpected exception is logged, and its text never reaches the client.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from mcpace.server.calls.content import encodable, failure_json
from mcpace.server.errors import (
    InputRequired,
    ResourceError,
    is_protocol_error,
    log_tool_failure,
    logger,
    resource_answer,
    tool_exception,
)
from mcpace.types import INTERNAL_ERROR, INVALID_PARAMS, wire

if TYPE_CHECKING:
    from mcpace.server.registration.prompts import Prompt

Answer = bytes | tuple[int, str, str | None]
"""A whole result as JSON, which may ask the client questions, or ``(code, message, data)`` of a protocol error."""


def tool_failure(name: str) -> Callable[[BaseException], Answer]:
    """Turns a tool's exception into an answer. A crash is logged with its traceback; the client reads the tool's name
    only."""

    def fail(error: BaseException) -> Answer:
        told = tool_exception(name, error)
        known = protocol_answer(told)
        if known is not None:
            return known
        log_tool_failure(name, told)
        return failure_json(str(told))

    return fail


def resource_failure(uri: str | None) -> Callable[[BaseException], Answer]:
    """Turns an exception of reading a resource into an answer."""

    def fail(error: BaseException) -> Answer:
        known = protocol_answer(error)
        if known is not None:
            return known
        if isinstance(error, ResourceError):
            return error_answer(resource_answer(uri or "", error))
        return plain_failure("resources/read")(error)

    return fail


def prompt_failure(prompt: Prompt) -> Callable[[BaseException], Answer]:
    """Turns an exception of a prompt into an answer, which names the prompt or the missing argument."""

    def fail(error: BaseException) -> Answer:
        known = protocol_answer(error)
        if known is not None:
            return known
        code, message = prompt_error(prompt.name, error)
        if code == INTERNAL_ERROR:
            logger.error("Prompt %r raised an unexpected exception", prompt.name, exc_info=error)
        return (code, message, None)

    return fail


def prompt_error(prompt: str, error: BaseException) -> tuple[int, str]:
    """The code and the message of the error that answers a failed prompt."""
    if isinstance(error, ValueError) and error.__cause__ is None:
        return INVALID_PARAMS, str(error)
    return INTERNAL_ERROR, f"Error rendering prompt {prompt}"


def plain_failure(method: str) -> Callable[[BaseException], Answer]:
    """Turns an unexpected exception into an answer that tells the client nothing about it."""

    def fail(error: BaseException) -> Answer:
        known = protocol_answer(error)
        if known is not None:
            return known
        logger.error("%s raised an unexpected exception", method, exc_info=error)
        return (INTERNAL_ERROR, "Internal server error", None)

    return fail


def protocol_answer(error: BaseException) -> Answer | None:
    """The answer to a protocol error or to questions for the client; ``None`` for any other exception."""
    if isinstance(error, InputRequired):
        # The standard library's encoder writes lone surrogates, which a client may have sent, as escapes.
        return json.dumps(wire(error.result)).encode()
    return error_answer(error) if is_protocol_error(error) else None


def error_answer(error: Any) -> tuple[int, str, str | None]:
    """A protocol error, mcpace's or the official SDK's, in the form that the compiled part takes."""
    data = error.error.data
    told = None if data is None else to_json(data, fallback=str).decode()
    return (error.error.code, encodable(error.error.message), told)
