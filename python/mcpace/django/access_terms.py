"""The terms of access to a tool, resource or prompt: from its registration, and from the settings by default.

Design constraint: all options are checked once, at registration; an unknown keyword is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from mcpace.django.choices import OutputFormat, UnknownArguments, parse_choice
from mcpace.django.conf import setting
from mcpace.django.limits import CacheRateLimit
from mcpace.django.permissions import Maker, asks_more, compile_permissions, is_named, scopes_of
from mcpace.server.auth.guards import UNGUARDED, Guards, RateLimit, as_tuple, guards, requires
from mcpace.server.errors import RegistrationError

Limit = RateLimit | CacheRateLimit | str
Limits = Sequence[Limit] | Limit


class UseOptions(TypedDict, total=False):
    """Keywords of every registration."""

    title: str | None
    description: str | None
    icons: Sequence[Any] | None
    permissions: Sequence[Any] | None
    """Checked after the spec's own ``permission_classes``."""
    rate_limits: Limits
    max_result_bytes: int | None
    dispatch_timeout: float | None


class ResourceOptions(UseOptions, total=False):
    """Keywords of a resource's registration."""

    annotations: Any
    meta: dict[str, Any] | None
    max_page_size: int | None


class ToolOptions(UseOptions, total=False):
    """Keywords of a tool's registration."""

    annotations: Any
    meta: dict[str, Any] | None
    unknown_arguments: UnknownArguments | str | None
    output_format: OutputFormat | str | None


class SelectorOptions(ToolOptions, total=False):
    """Keywords of a selector tool's registration."""

    max_page_size: int | None
    """Maximum number of rows in one result; ``None`` for no maximum."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of access to one tool, resource or prompt."""

    makers: tuple[Maker, ...]
    """Factories of the permissions."""
    counted: tuple[CacheRateLimit, ...]
    """The limits that Django's cache counts."""
    guards: Guards
    """Conditions that the runtime checks before a call begins, and the bounds that it enforces during the call."""
    max_result_bytes: int | None
    listed: Mapping[str, Any]
    """The entry in lists: title, description, icons and the like."""


def terms(
    kind: str,
    name: str,
    options: Mapping[str, Any],
    known: type,
    classes: Sequence[Any] | None,
    function: Any,
    outer: Guards = UNGUARDED,
) -> Terms:
    """The terms of a registration of ``function`` on a server with the guards ``outer``. Raises ``RegistrationError``
    where no permissions are named, ``TypeError`` for an option that ``known`` lacks."""
    for option in options:
        if option not in known.__annotations__:
            there = ", ".join(sorted(known.__annotations__))
            raise TypeError(f"{kind} {name!r}: there is no option {option!r}; there are {there}")
    what = f"{kind} {name!r}"
    given = options.get("permissions")
    if kind != "prompt" and setting("REQUIRE_TOOL_PERMISSIONS") and not is_named(classes, given):
        raise RegistrationError(
            f"{what} has no permissions, so every caller could use it. Say who may: "
            "permission_classes=[…] in its spec, or permissions=[…] here; [] is everybody. "
            "MCPACE['REQUIRE_TOOL_PERMISSIONS'] = False lifts this"
        )
    makers = compile_permissions(classes, given, what)
    most = options.get("max_result_bytes", _UNSAID)
    limit = options.get("dispatch_timeout", _UNSAID)
    most = setting("MAX_RESULT_BYTES") if most is _UNSAID else most
    limit = setting("DISPATCH_TIMEOUT") if limit is _UNSAID else limit
    limits = as_tuple(options.get("rate_limits"), lambda one: isinstance(one, Limit), f"rate_limits of {what}")
    counted = tuple(one for one in limits if isinstance(one, CacheRateLimit))
    scopes = scopes_of(makers)
    guarding = guards(
        [requires(*scopes)] if scopes else [],
        [one for one in limits if not isinstance(one, CacheRateLimit)],
        limit,
        # The size of a tool's result is checked within its transaction instead.
        None if kind == "tool" else most,
        what=what,
    )
    if asks_more(makers):
        for whose, counting in (("a", guarding), ("the server's", outer)):
            if any(one.by == "everyone" for one in counting.rate_limits):
                raise RegistrationError(
                    f"{what}: {whose} RateLimit by everyone counts before permission classes are asked, so callers who "
                    "may not use it could use it up for all. CacheRateLimit counts after them; or count by principal"
                )
    told: dict[str, Any] = {
        key: options.get(key) for key in ("title", "icons", "annotations", "meta") if key in known.__annotations__
    }
    told["description"] = options.get("description") or docstring_of(function)
    return Terms(makers, counted, guarding, most, told)


_UNSAID = object()


def unknown_arguments(options: Mapping[str, Any]) -> UnknownArguments:
    """Treatment of arguments that the tool doesn't have."""
    given = options.get("unknown_arguments")
    return parse_choice(UnknownArguments, setting("UNKNOWN_ARGUMENTS") if given is None else given, "unknown_arguments")


def output_format(options: Mapping[str, Any]) -> OutputFormat:
    """Format of a tool's text."""
    given = options.get("output_format")
    return parse_choice(OutputFormat, setting("DEFAULT_OUTPUT_FORMAT") if given is None else given, "output_format")


def max_rows(options: Mapping[str, Any]) -> int | None:
    """Maximum number of rows in one result; ``None`` for no maximum."""
    given = options.get("max_page_size", _UNSAID)
    most: int | None = setting("MAX_PAGE_SIZE") if given is _UNSAID else given
    return most


def docstring_of(function: Callable[..., Any] | None) -> str:
    """The docstring of a function, without its indentation."""
    return inspect.getdoc(function) or "" if function is not None else ""
