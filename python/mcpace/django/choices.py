"""The few closed sets of words that registrations and settings choose from."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured

WordT = TypeVar("WordT", bound=StrEnum)


class UnknownArguments(StrEnum):
    """What becomes of arguments that a tool doesn't have."""

    REJECT = "reject"
    """The call is refused; the model reads which."""
    IGNORE = "ignore"
    """They are dropped."""
    PASSTHROUGH = "passthrough"
    """They reach the service as keywords of their names, unvalidated."""


class OutputFormat(StrEnum):
    """How a result's text is written. Structured content is JSON always."""

    JSON = "json"
    TOON = "toon"
    AUTO = "auto"
    """The shorter of the two."""


class ArgumentBinding(StrEnum):
    """Where a service without an input serializer takes its arguments from."""

    BUNDLE = "bundle"
    """Nowhere: only a serializer lets a caller's values in."""
    SPREAD_AUTHOR_WINS = "spread_author_wins"
    """From the call, by the service's own type hints."""


def chosen(words: type[WordT], given: object, what: str) -> WordT:
    """The word that is meant: one of ours, its text, or another package's enumeration of the same values.

    Raises ``ImproperlyConfigured`` for any other.
    """
    value = getattr(given, "value", given)
    try:
        return words(str(value))
    except ValueError:
        there = ", ".join(word.value for word in words)
        raise ImproperlyConfigured(f"{what}={given!r}: there are {there}") from None
