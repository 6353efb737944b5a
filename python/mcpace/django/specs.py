"""What a spec asks for, and whether it is compiled here.

``ServiceSpec`` and ``SelectorSpec`` are djangorestframework-services'. What most of them use is compiled; one that says
something else is run by that package's own dispatcher, which knows all of it and takes longer.

Design constraint: a field that isn't known here is never passed over: a spec that sets it goes the long way.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from rest_framework import serializers
from rest_framework_services import SelectorKind, SelectorSpec, ServiceSpec

from mcpace.server.errors import InvalidSignature, RegistrationError
from mcpace.server.signature import Arguments, arguments_of, is_async

# What is compiled; and what says something of HTTP, or of documents, alone.
_SERVICE = frozenset(
    {"service", "atomic", "partial", "input_serializer", "instance_selector_spec", "output_selector_spec"}
    | {"allow_none", "kwargs", "permission_classes", "preconditions"}
    | {"success_status", "idempotent", "document_service_error", "response_finalizer", "many_argument", "metadata"}
    | {"output_filter_from_call"}
)
_SELECTOR = frozenset(
    {"kind", "selector", "allow_none", "output_serializer", "select_related", "prefetch_related", "annotations"}
    | {"extend_queryset", "filter_set", "kwargs", "permission_classes", "preconditions", "metadata"}
)
# Of a selector that finds the row a service is about.
_TARGET = frozenset({"kind", "selector", "allow_none", "select_related", "prefetch_related", "annotations", "metadata"})
# Of a selector that only says how a service's return is shown.
_SHOWN = frozenset({"kind", "output_serializer", "allow_none", "metadata"})


def check_service(spec: Any, name: str) -> None:
    """Raises ``RegistrationError`` for what is no ``ServiceSpec``."""
    if not isinstance(spec, ServiceSpec):
        raise RegistrationError(
            f"register_service_tool({name!r}) takes a ServiceSpec, not {type(spec).__name__}"
            + ("; a SelectorSpec is register_selector_tool's" if isinstance(spec, SelectorSpec) else "")
        )


def check_selector(spec: Any, name: str, method: str = "register_selector_tool") -> None:
    """Raises ``RegistrationError`` for what is no ``SelectorSpec`` with a selector."""
    if not isinstance(spec, SelectorSpec):
        raise RegistrationError(
            f"{method}({name!r}) takes a SelectorSpec, not {type(spec).__name__}"
            + ("; a ServiceSpec is register_service_tool's" if isinstance(spec, ServiceSpec) else "")
            + ("; a function is one with SelectorSpec(kind=…, selector=function)" if inspect.isfunction(spec) else "")
        )
    if spec.selector is None:
        raise RegistrationError(f"{method}({name!r}): the spec has no selector, so there is nothing to read")


def is_compiled_service(spec: Any) -> bool:
    """Whether a service's spec asks for nothing but what is compiled here."""
    shown, target = spec.output_selector_spec, spec.instance_selector_spec
    serializer = spec.input_serializer
    return (
        _set_fields(spec) <= _SERVICE
        and (serializer is None or _is_serializer(serializer))
        and (
            shown is None or (_set_fields(shown) <= _SHOWN and shown.kind is SelectorKind.RETRIEVE and _is_shown(shown))
        )
        and (
            target is None
            or (
                _set_fields(target) <= _TARGET and target.kind is SelectorKind.RETRIEVE and is_readable(target.selector)
            )
        )
    )


def is_compiled_selector(spec: Any) -> bool:
    """Whether a selector's spec asks for nothing but what is compiled here."""
    return (
        _set_fields(spec) <= _SELECTOR
        and is_readable(spec.selector)
        and _is_shown(spec)
        and not _has_ranges(spec.filter_set)
    )


def is_readable(function: Any) -> bool:
    """Whether a selector's arguments can be read off its signature, and called from a thread."""
    if function is None or is_async(function):
        return False
    try:
        arguments_of(function, skip=("request", "user", "view", "progress"))
    except InvalidSignature:
        # `**extras` among others.
        return False
    return not _is_marked(function)


def parameters_of(function: Callable[..., Any], seeds: Collection[str], label: str) -> Arguments:
    """A function's own parameters as a call's arguments, without those that the server fills in.

    Raises ``RegistrationError`` where they can't be a caller's.
    """
    names = inspect.signature(function).parameters
    try:
        return arguments_of(function, skip=[name for name in names if name in seeds])
    except InvalidSignature as error:
        raise RegistrationError(f"{label}: {error}") from error


def merged(*schemas: Mapping[str, Any]) -> dict[str, Any]:
    """One object's schema of several. A later one's property wins."""
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    required: list[str] = []
    for schema in schemas:
        properties |= schema.get("properties", {})
        definitions |= schema.get("$defs", {})
        required += [name for name in schema.get("required", ()) if name not in required]
    whole: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        whole["required"] = required
    if definitions:
        whole["$defs"] = definitions
    return whole


def _set_fields(spec: Any) -> set[str]:
    """The fields that say something: whose value isn't the default."""
    found = set()
    for one in dataclasses.fields(spec):
        default = one.default if one.default is not dataclasses.MISSING else dataclasses.MISSING
        if one.default_factory is not dataclasses.MISSING:
            default = one.default_factory()
        value = getattr(spec, one.name)
        if value is not default and not (isinstance(value, str | int | tuple) and value == default):
            found.add(one.name)
    return found


def _is_serializer(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, serializers.BaseSerializer)


def _is_shown(spec: Any) -> bool:
    serializer = spec.output_serializer
    return serializer is None or (_is_serializer(serializer) and not _is_projected(serializer))


def _is_projected(serializer: type[Any]) -> bool:
    # Fields that are shown to some audiences only: that package's own doing.
    return any("audience" in name for base in serializer.__mro__ for name in vars(base))


def _is_marked(function: Any) -> bool:
    """Whether a parameter carries that package's own marks (``NotClientInput``, ``InputRequired``)."""
    hints = getattr(function, "__annotations__", {})
    return any("NotClientInput" in str(hint) or "InputRequired" in str(hint) for hint in hints.values())


def _has_ranges(filter_set: Any) -> bool:
    """Whether a filter takes two values, which a form knows by two names."""
    if filter_set is None:
        return False
    filters = getattr(filter_set, "base_filters", {})
    return any(hasattr(getattr(one.field, "widget", None), "suffixes") for one in filters.values())
