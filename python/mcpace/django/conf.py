"""The settings: ``MCPACE = {…}`` of the Django project.

Design constraint: settings are read when they are needed, so that tests may override them. Each reading checks all
names, so an unknown setting raises whichever setting is read.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

NAME = "MCPACE"


@dataclass(frozen=True, slots=True)
class Setting:
    """Default and type of one setting."""

    default: Any
    accepts: Callable[[Any], bool]
    kind: str
    """Description of the accepted values, for error messages."""


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_word(*words: str) -> Callable[[Any], bool]:
    # An enumeration of another package with the same values is accepted.
    return lambda value: getattr(value, "value", value) in words


def _is_size(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


def _is_seconds(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value > 0)


_TEXT = (_is_text, "a text or None")
_TEXTS = (_is_texts, "a list of texts")
_FLAG = (_is_flag, "True or False")
_SIZE = (_is_size, "a whole number above 0, or None for no bound")
_SECONDS = (_is_seconds, "seconds above 0, or None for no limit")

SETTINGS: dict[str, Setting] = {
    "SERVER": Setting(None, *_TEXT),
    "AUTH_BACKEND": Setting(None, *_TEXT),
    "RESOURCE_URL": Setting(None, *_TEXT),
    "AUTHORIZATION_SERVERS": Setting([], *_TEXTS),
    "REQUIRED_SCOPES": Setting([], *_TEXTS),
    "ENFORCE_AUDIENCE": Setting(False, *_FLAG),
    "ALLOWED_ORIGINS": Setting([], *_TEXTS),
    "REQUIRE_TOOL_PERMISSIONS": Setting(True, *_FLAG),
    "UNKNOWN_ARGUMENTS": Setting(
        "reject", _is_word("reject", "ignore", "passthrough"), "'reject', 'ignore' or 'passthrough'"
    ),
    "DEFAULT_OUTPUT_FORMAT": Setting("json", _is_word("json", "toon", "auto"), "'json', 'toon' or 'auto'"),
    "MAX_RESULT_BYTES": Setting(5 << 20, *_SIZE),
    "MAX_PAGE_SIZE": Setting(100, *_SIZE),
    "MAX_REQUEST_BYTES": Setting(1 << 20, *_SIZE),
    "DISPATCH_TIMEOUT": Setting(None, *_SECONDS),
    "STORE": Setting(None, *_TEXT),
    "LIMITER": Setting(None, *_TEXT),
    "ON_STORE_DOWN": Setting("refuse", _is_word("refuse", "memory"), "'refuse' or 'memory'"),
    "STORE_PREFIX": Setting(None, *_TEXT),
    "STATELESS": Setting(None, lambda value: value is None or isinstance(value, bool), "True, False or None"),
}
"""All settings, by name. docs/django.md describes each; a test compares the two."""


def setting(name: str) -> Any:
    """A setting's value.

    Raises ``ImproperlyConfigured`` where ``MCPACE`` has an unknown name, or this setting's value isn't accepted.
    """
    given = check()
    if name not in given:
        return SETTINGS[name].default
    known = SETTINGS[name]
    if not known.accepts(given[name]):
        raise ImproperlyConfigured(f"{NAME}[{name!r}] = {given[name]!r}: it must be {known.kind}")
    return given[name]


def check() -> dict[str, Any]:
    """The project's settings. Raises ``ImproperlyConfigured`` for an unknown name."""
    given = getattr(settings, NAME, None) or {}
    if not isinstance(given, dict):
        raise ImproperlyConfigured(f"{NAME} must be a dictionary of settings, not {type(given).__name__}")
    for name in given:
        if name not in SETTINGS:
            near = difflib.get_close_matches(str(name), SETTINGS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(SETTINGS))}"
            raise ImproperlyConfigured(f"{NAME}[{name!r}]: there is no such setting; {hint}")
    return given
