"""Selectors as resources: a URI, or a template whose variables are the selector's arguments; and guarded prompts.

Design constraint: the runtime reads them as it reads any function's, so what a selector gives is made text here, in the
thread that reads it and within Django's request cycle.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Model
from rest_framework_services import SelectorKind

from mcpace.django import cycle
from mcpace.django.failures import protocol_error, told_of
from mcpace.django.limits import CacheRateLimit
from mcpace.django.outputs import Renderer, json_of
from mcpace.django.permissions import Maker, check, check_object
from mcpace.django.pool import Seeds
from mcpace.django.request import Call
from mcpace.django.selectors import Shaped
from mcpace.django.transactions import around, entered
from mcpace.server.errors import RegistrationError, ResourceError, ResourceNotFoundError
from mcpace.server.principal import get_access_token

Acting = Callable[[], Any] | None
"""Gives the user whom calls are for, where nobody is authenticated."""


def reader(
    name: str,
    spec: Any,
    variables: list[str],
    seeds: Seeds,
    permissions: tuple[Maker, ...],
    serializer: type[Any] | None,
    limits: tuple[CacheRateLimit, ...],
    acting: Acting,
) -> Callable[..., str]:
    """A function of the template's variables that reads the resource.

    Raises ``RegistrationError`` where the selector takes others.
    """
    shaped = Shaped(name, spec, seeds)
    reserved = sorted(set(variables) & seeds.names)
    if reserved:
        raise RegistrationError(
            f"resource {name!r}: {reserved[0]} is filled by the server; call the variable otherwise"
        )
    required = set(shaped.schema.get("required", ()))
    if not required <= set(variables) or not set(variables) <= shaped.names:
        takes = ", ".join(sorted(shaped.names)) or "none"
        raise RegistrationError(
            f"resource {name!r}: the template has the variables {variables}, its selector takes {takes}"
        )
    renderer = Renderer(serializer or spec.output_serializer)
    surroundings = around(spec.selector, atomic=False)
    is_list = spec.kind is SelectorKind.LIST

    def found(call: Call) -> Any:
        for limit in limits:
            limit.take(name, call)
        asked = check(permissions, call)
        with entered(surroundings):
            if is_list:
                return renderer.many(shaped.rows(call), call)
            instance = shaped.first(call)
            if instance is None:
                raise ResourceNotFoundError(f"{name}: there is nothing at this URI")
            if isinstance(instance, Model):
                check_object(asked, call, instance)
            return renderer.one(instance, call)

    def read(**values: Any) -> str:
        text: str = _within(name, values, acting, lambda call: json_of(found(call)).decode())
        return text

    # The runtime reads the variables off the signature; what they become, the selector's own types say.
    read.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY, annotation=str) for one in variables],
        return_annotation=str,
    )
    read.__name__ = name
    return read


def guarded(
    name: str, function: Callable[..., Any], permissions: tuple[Maker, ...], acting: Acting
) -> Callable[..., Any]:
    """A prompt's function within Django's request cycle, for those who may."""

    def render(**values: Any) -> Any:
        def run(call: Call) -> Any:
            check(permissions, call)
            return function(**values)

        return _within(name, values, acting, run)

    render.__signature__ = inspect.signature(function, eval_str=True)  # type: ignore[attr-defined]
    render.__name__ = getattr(function, "__name__", name)
    render.__doc__ = function.__doc__
    return render


def _within(name: str, values: Mapping[str, Any], acting: Acting, run: Callable[[Call], Any]) -> Any:
    call = Call(name, dict(values))
    call.principal = get_access_token()
    cycle.begin()
    try:
        if acting is not None:
            call.acts_for(acting)
        return run(call)
    except Exception as error:
        denied = protocol_error(error)
        if denied is not None:
            raise denied from error
        refused = told_of(error)
        if refused is None:
            raise
        if refused.kind == "not_found":
            raise ResourceNotFoundError(f"{name}: {refused.message}") from error
        raise ResourceError(f"{name}: {refused.message}") from error
    finally:
        cycle.end()
