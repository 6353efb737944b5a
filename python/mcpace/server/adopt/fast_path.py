"""What all quick ways to a tool share: why one isn't taken, what a call comes to, and how results are checked.

Design constraint: the words are the SDKs' own, so that a client can't tell which way its call went.
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
    """A call's arguments don't fit, in the SDK's words."""


class Unfit(Exception):
    """Why a tool stays with the SDK."""


def checker_of(schema: dict[str, Any] | None) -> Callable[[Any], str | None] | None:
    """What the low-level server of mcp 1.x says of a result that doesn't fit its tool's schema; it has jsonschema."""
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


def failed(text: str) -> bytes:
    """A tool's failure, as a result."""
    return pydantic_core.to_json({"content": [{"type": "text", "text": text}], "isError": True})


def of_error(error: Any) -> Answer:
    """A protocol error of the SDK's."""
    data = error.error.data
    text = None if data is None else json.dumps(pydantic_core.to_jsonable_python(data, by_alias=True))
    return (error.error.code, error.error.message, text)
