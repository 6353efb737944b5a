"""Code that the fast paths to adopted tools share: reasons against a fast path, answers of calls, checks of results.

Design constraint: messages are worded as the SDKs word them, so that clients see no difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pydantic_core

Answer = bytes | tuple[int, str, str | None]
"""A result's JSON, or a protocol error's code, message and data."""


class Rejected(Exception):
    """Invalid arguments of a call, with the SDK's message."""


class Unfit(Exception):
    """A tool has no fast path; the message is the reason."""


def checker_of(schema: dict[str, Any] | None) -> Callable[[Any], str | None] | None:
    """The check of results against a tool's schema, with the messages of mcp 1.x's low-level server, which has
    jsonschema."""
    if schema is None:
        return None
    validators, exceptions = import_module("jsonschema.validators"), import_module("jsonschema.exceptions")
    checker = validators.validator_for(schema)(schema)

    def check(structured: Any) -> str | None:
        if structured is None:
            return "Output validation error: outputSchema defined but no structured output returned"
        mistake = exceptions.best_match(checker.iter_errors(structured))
        return None if mistake is None else f"Output validation error: {mistake.message}"

    return check


def failure_json(text: str) -> bytes:
    """The result of a failed tool call."""
    return pydantic_core.to_json({"content": [{"type": "text", "text": text}], "isError": True})


def protocol_error_answer(error: Any) -> Answer:
    """The answer to a protocol error of the SDK."""
    data = error.error.data
    text = None if data is None else json.dumps(pydantic_core.to_jsonable_python(data, by_alias=True))
    return (error.error.code, error.error.message, text)
