"""Decides whether a spec can be compiled, by the features that it uses.

``ServiceSpec`` and ``SelectorSpec`` are defined by djangorestframework-services. Their common features are compiled
here; a spec with any other feature is run by that package's own dispatcher, which supports all of them and is slower.

Design constraint: an unknown field is never ignored. A spec that sets one is run by the dispatcher.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from rest_framework import serializers
from rest_framework_services import SelectorKind, SelectorSpec, ServiceSpec

from mcpace.server.errors import InvalidSignature, RegistrationError
from mcpace.server.registration.signature import Arguments, arguments_of, is_async

# Fields that are compiled, and fields that concern only HTTP or documentation.
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
# Fields of a selector that finds the row of a service.
_TARGET = frozenset({"kind", "selector", "allow_none", "select_related", "prefetch_related", "annotations", "metadata"})
# Fields of a selector that only determines how a service's return value is rendered.
_SHOWN = frozenset({"kind", "output_serializer", "allow_none", "metadata"})


def check_service(spec: Any, name: str) -> None:
    """Raises ``RegistrationError`` for an object that isn't a ``ServiceSpec``."""
    if not isinstance(spec, ServiceSpec):
        raise RegistrationError(
            f"register_service_tool({name!r}) takes a ServiceSpec, not {type(spec).__name__}"
            + ("; a SelectorSpec is register_selector_tool's" if isinstance(spec, SelectorSpec) else "")
        )


def check_selector(spec: Any, name: str, method: str = "register_selector_tool") -> None:
    """Raises ``RegistrationError`` for an object that isn't a ``SelectorSpec`` with a selector."""
    if not isinstance(spec, SelectorSpec):
        raise RegistrationError(
            f"{method}({name!r}) takes a SelectorSpec, not {type(spec).__name__}"
            + ("; a ServiceSpec is register_service_tool's" if isinstance(spec, ServiceSpec) else "")
            + ("; a function is one with SelectorSpec(kind=…, selector=function)" if inspect.isfunction(spec) else "")
        )
    if spec.selector is None:
        raise RegistrationError(f"{method}({name!r}): the spec has no selector, so there is nothing to read")


def is_compiled_service(spec: Any) -> bool:
    """Whether a service's spec uses compiled features only."""
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
    """Whether a selector's spec uses compiled features only."""
    return (
        _set_fields(spec) <= _SELECTOR
        and is_readable(spec.selector)
        and _is_shown(spec)
        and not _has_ranges(spec.filter_set)
    )


def is_readable(function: Any) -> bool:
    """Whether a selector's signature determines its arguments, and a thread can call it."""
    if function is None or is_async(function):
        return False
    try:
        arguments_of(function, skip=("request", "user", "view", "progress"))
    except InvalidSignature:
        # For example, `**extras`.
        return False
    return not _is_marked(function)


def parameters_of(function: Callable[..., Any], seeds: Collection[str], label: str) -> Arguments:
    """A function's own parameters as a call's arguments, without those that the server fills in.

    Raises ``RegistrationError`` where a caller could not send them.
    """
    names = inspect.signature(function).parameters
    try:
        return arguments_of(function, skip=[name for name in names if name in seeds])
    except InvalidSignature as error:
        raise RegistrationError(f"{label}: {error}") from error


def merge_schemas(*schemas: Mapping[str, Any]) -> dict[str, Any]:
    """One object schema with the properties of several schemas. A later schema's property replaces an earlier one."""
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
    """The names of the fields whose value isn't the default."""
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
    # Fields that only some audiences see, a feature of djangorestframework-services.
    return any("audience" in name for base in serializer.__mro__ for name in vars(base))


def _is_marked(function: Any) -> bool:
    """Whether a parameter has a marker of djangorestframework-services (``NotClientInput``, ``InputRequired``)."""
    hints = getattr(function, "__annotations__", {})
    return any("NotClientInput" in str(hint) or "InputRequired" in str(hint) for hint in hints.values())


def _has_ranges(filter_set: Any) -> bool:
    """Whether a filter takes a range, which a form submits as two names."""
    if filter_set is None:
        return False
    filters = getattr(filter_set, "base_filters", {})
    return any(hasattr(getattr(one.field, "widget", None), "suffixes") for one in filters.values())
