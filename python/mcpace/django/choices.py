"""Enumerations for options of registrations and settings."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured

WordT = TypeVar("WordT", bound=StrEnum)


class UnknownArguments(StrEnum):
    """Treatment of arguments that a tool doesn't have."""

    REJECT = "reject"
    """The call is refused, and the answer names the arguments."""
    IGNORE = "ignore"
    """The arguments are dropped."""
    PASSTHROUGH = "passthrough"
    """The arguments are passed to the service as keywords, without validation."""


class OutputFormat(StrEnum):
    """Format of a result's text. Structured content is always JSON."""

    JSON = "json"
    TOON = "toon"
    AUTO = "auto"
    """The shorter of the two."""


class ArgumentBinding(StrEnum):
    """Source of the arguments of a service without an input serializer."""

    BUNDLE = "bundle"
    """No source: only a serializer accepts a caller's values."""
    SPREAD_AUTHOR_WINS = "spread_author_wins"
    """The call's arguments, validated by the service's type hints."""


def parse_choice(words: type[WordT], given: object, what: str) -> WordT:
    """The member of ``words`` that ``given`` stands for: a member, its value, or a member of another package's
    enumeration with that value.

    Raises ``ImproperlyConfigured`` for any other object.
    """
    value = getattr(given, "value", given)
    try:
        return words(str(value))
    except ValueError:
        there = ", ".join(word.value for word in words)
        raise ImproperlyConfigured(f"{what}={given!r}: there are {there}") from None
