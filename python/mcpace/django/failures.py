"""Answers to the client for exceptions of a call.

An intended refusal by an author or a serializer is a result with ``isError``, which lets the model correct its call:
``{"error": {"type": …, "message": …, "detail": …}}``. A crash is logged, and its answer contains only the tool's name.
A denial is a protocol error.

Design constraint: only this module decides which details of an exception leave the server.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from django.core import exceptions
from django.http import Http404
from pydantic_core import to_json
from rest_framework.exceptions import (
    APIException,
    AuthenticationFailed,
    NotAuthenticated,
    NotFound,
    PermissionDenied,
    Throttled,
    ValidationError,
)
from rest_framework_services.exceptions import (
    ActionUnavailable,
    ServiceError,
    ServiceNotFound,
    ServiceValidationError,
)

from mcpace.django.limits import LimitExceeded, Uncounted
from mcpace.django.permissions import Forbidden
from mcpace.server.calls.content import failure_json
from mcpace.server.core.failures import Answer, protocol_answer
from mcpace.server.errors import (
    InvalidArguments,
    MCPError,
    ToolError,
    is_tool_error,
    log_tool_failure,
    logger,
    tool_exception,
)
from mcpace.types import INTERNAL_ERROR

FORBIDDEN, RATE_LIMITED = -32003, -32004
"""The runtime's own codes of a denial and of a limit."""


class Refused(Exception):
    """A call that can't be carried out, with a reason for the model."""

    def __init__(self, kind: str, message: str, detail: Any = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.detail = detail


def not_found(name: str) -> Refused:
    """The refusal of a call whose row does not exist."""
    return Refused("not_found", f"{name}: there is nothing with these arguments")


def invalid_arguments(detail: Any, message: str = "Invalid arguments") -> Refused:
    """The refusal of invalid arguments, with the errors by field."""
    return Refused("validation_error", message, detail)


def failure(name: str) -> Callable[[BaseException], Answer]:
    """The function that turns an exception of the tool ``name`` into an answer."""

    def fail(error: BaseException) -> Answer:
        denied = protocol_error(error)
        if denied is not None:
            logger.info("Tool %r refused the caller: %s", name, denied.message)
            return protocol_answer(denied) or b""
        known = protocol_answer(error)
        if known is not None:
            return known
        refused = refusal_of(error)
        if refused is not None:
            logger.info("Tool %r failed: %s", name, refused.kind)
            return failure_json(refusal_text(refused))
        told = tool_exception(name, error)
        log_tool_failure(name, told)
        return failure_json(str(told))

    return fail


def protocol_error(error: BaseException) -> MCPError | None:
    """The protocol error for a denial or for a rate limit that was reached; ``None`` for any other exception."""
    if isinstance(error, LimitExceeded):
        return MCPError(RATE_LIMITED, str(error), {"retryAfterMs": int(error.retry_after_s * 1000)})
    if isinstance(error, Forbidden):
        return MCPError(FORBIDDEN, error.message, {"requiredScopes": list(error.scopes)})
    if isinstance(error, Uncounted):
        return MCPError(INTERNAL_ERROR, str(error))
    if _is_database_closed(error):
        return MCPError(
            INTERNAL_ERROR,
            "the test may not use the database: mark it @pytest.mark.django_db(transaction=True), or make it a "
            "TransactionTestCase. A client's calls run on threads of their own, which see committed rows only",
        )
    if isinstance(error, exceptions.PermissionDenied | PermissionDenied | NotAuthenticated | AuthenticationFailed):
        return MCPError(FORBIDDEN, "you do not have permission to perform this action", {"requiredScopes": []})
    return None


def _is_database_closed(error: BaseException) -> bool:
    """Whether a test runner keeps the test from using the database: pytest-django, or Django's ``SimpleTestCase``."""
    if "pytest_django" in sys.modules and type(error) is RuntimeError:
        return str(error).startswith("Database access not allowed")
    return type(error).__name__ == "DatabaseOperationForbidden" and "django.test.testcases" in sys.modules


def refusal_of(error: BaseException) -> Refused | None:
    """The refusal that an exception stands for; ``None`` for a crash and for ``ToolError``, which has its own text."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, ValidationError):
        return invalid_arguments(error.detail)
    if isinstance(error, ServiceValidationError):
        return invalid_arguments(getattr(error, "detail", None), getattr(error, "message", None) or str(error))
    if isinstance(error, InvalidArguments):
        errors = getattr(error.__cause__, "errors", None)
        return invalid_arguments(_errors_by_place(errors(include_url=False)) if callable(errors) else None)
    if isinstance(error, exceptions.ValidationError):
        return invalid_arguments(
            error.message_dict if hasattr(error, "error_dict") else {exceptions.NON_FIELD_ERRORS: error.messages}
        )
    if isinstance(error, ActionUnavailable):
        return Refused("action_unavailable", str(error), {"code": getattr(error, "code", None)})
    if isinstance(error, ServiceNotFound | NotFound | Http404):
        return Refused("not_found", str(error) or "there is nothing with these arguments")
    if isinstance(error, ServiceError):
        return Refused("service_error", getattr(error, "message", None) or str(error))
    if isinstance(error, Throttled):
        return Refused("throttled", str(error.detail))
    if isinstance(error, APIException) and error.status_code < 500:
        return _api_refusal(error)
    return None


def _api_refusal(error: APIException) -> Refused:
    """The refusal that one of REST framework's exceptions stands for. Its detail is intended for the client."""
    detail = error.detail
    if isinstance(detail, str):
        return Refused(getattr(detail, "code", None) or error.default_code, str(detail))
    return Refused(error.default_code, str(error.default_detail), detail)


def refusal_text(refused: Refused) -> str:
    """The refusal as JSON text for the model."""
    error: dict[str, Any] = {"type": refused.kind, "message": refused.message}
    if refused.detail is not None:
        error["detail"] = refused.detail
    return to_json({"error": error}, fallback=str).decode()


def as_tool_error(name: str, error: Exception) -> Exception:
    """The exception that an in-process call raises, equivalent to the answer that a client would get."""
    if isinstance(error, Forbidden | LimitExceeded | Uncounted):
        return error
    denied = protocol_error(error)
    if denied is not None:
        denied.__cause__ = error
        return denied
    refused = refusal_of(error)
    if refused is not None:
        told: Exception = ToolError(refusal_text(refused))
        told.__cause__ = error
        return told
    if is_tool_error(error):
        return error
    made = tool_exception(name, error)
    return made if isinstance(made, Exception) else error


def _errors_by_place(errors: list[dict[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in errors:
        found.setdefault(".".join(str(part) for part in one["loc"]), []).append(one["msg"])
    return found
