"""Selectors as resources: a URI, or a template whose variables are the selector's arguments; and guarded prompts.

Design constraint: the runtime reads these resources like those of any function. A selector's rows are therefore turned
into text here, in the thread that reads the resource and within Django's request cycle.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rest_framework_services import SelectorKind

from mcpace.django import request_cycle
from mcpace.django.failures import protocol_error, refusal_of
from mcpace.django.keyword_injection import Seeds
from mcpace.django.limits import CacheRateLimit
from mcpace.django.outputs import Renderer, json_of
from mcpace.django.permissions import Maker, check
from mcpace.django.request import Call, Site
from mcpace.django.selectors import PermittedRows, all_rows
from mcpace.django.transactions import in_transaction, transaction_for
from mcpace.server.auth.principal import get_access_token
from mcpace.server.errors import RegistrationError, ResourceError, ResourceNotFoundError, ToolError
from mcpace.server.registration.injection import find_context
from mcpace.server.registration.signature import is_async, name_of


def reader(
    name: str,
    spec: Any,
    variables: list[str],
    seeds: Seeds,
    permissions: tuple[Maker, ...],
    serializer: type[Any] | None,
    limits: Sequence[CacheRateLimit],
    site: Site,
    most: int | None,
) -> Callable[..., str]:
    """A function of the template's variables that reads the resource. A list has ``most`` rows at most.

    Raises ``RegistrationError`` where the variables don't match the selector's parameters.
    """
    permitted = PermittedRows(name, spec, seeds, f"resource {name!r}")
    selected = permitted.selected
    reserved = sorted(set(variables) & seeds.names)
    if reserved:
        raise RegistrationError(
            f"resource {name!r}: {reserved[0]} is filled by the server; call the variable otherwise"
        )
    required = set(selected.schema.get("required", ()))
    if not required <= set(variables) or not set(variables) <= selected.names:
        takes = ", ".join(sorted(selected.names)) or "none"
        raise RegistrationError(
            f"resource {name!r}: the template has the variables {variables}, its selector takes {takes}"
        )
    renderer = Renderer(serializer or spec.output_serializer)
    surroundings = transaction_for(spec.selector, atomic=False)
    is_list = spec.kind is SelectorKind.LIST

    def found(call: Call) -> Any:
        with in_transaction(surroundings):
            checked = check(permissions, call)
            if is_list:
                return renderer.render_many(all_rows(permitted.rows(call), most), call)
            return renderer.render_one(permitted.single_row(call, checked), call)

    def read(**values: Any) -> str:
        call = _call(name, values, limits, site)
        with _cycle_around(name):
            text: str = json_of(found(call)).decode()
        return text

    # The runtime takes the variables from the signature, as strings. The selector's own type hints convert them.
    read.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY, annotation=str) for one in variables],
        return_annotation=str,
    )
    read.__name__ = name
    return read


def guarded_prompt(
    name: str,
    function: Callable[..., Any],
    permissions: tuple[Maker, ...],
    limits: Sequence[CacheRateLimit],
    site: Site,
) -> Callable[..., Any]:
    """Wraps a prompt's function in Django's request cycle and in the check of its permissions."""
    context = find_context(function)

    def check_access(values: Mapping[str, Any]) -> None:
        check(permissions, _call(name, {key: one for key, one in values.items() if key != context}, limits, site))

    made = (
        _on_the_loop(name, function, check_access)
        if is_async(function)
        else _in_its_thread(name, function, check_access)
    )
    made.__name__ = name_of(function)
    return made


def _in_its_thread(
    name: str, function: Callable[..., Any], check_access: Callable[[Mapping[str, Any]], None]
) -> Callable[..., Any]:
    surroundings = transaction_for(function, atomic=False)

    @functools.wraps(function)
    def render(**values: Any) -> Any:
        with _cycle_around(name), in_transaction(surroundings):
            check_access(values)
            return function(**values)

    return render


def _on_the_loop(
    name: str, function: Callable[..., Any], check_access: Callable[[Mapping[str, Any]], None]
) -> Callable[..., Any]:
    from asgiref.sync import ThreadSensitiveContext, sync_to_async

    def begin_call(values: Mapping[str, Any]) -> None:
        request_cycle.begin()
        check_access(values)

    @functools.wraps(function)
    async def render(**values: Any) -> Any:
        async with ThreadSensitiveContext():
            try:
                with _translate_errors(name):
                    await sync_to_async(begin_call)(values)
                    return await function(**values)
            finally:
                await sync_to_async(request_cycle.end_with_thread)()

    return render


def _call(name: str, values: Mapping[str, Any], limits: Sequence[CacheRateLimit], site: Site) -> Call:
    call = Call(name, dict(values), site=site, limits=limits)
    call.principal = get_access_token()
    return call


@contextmanager
def _cycle_around(name: str) -> Iterator[None]:
    request_cycle.begin()
    try:
        with _translate_errors(name):
            yield
    finally:
        request_cycle.end()


@contextmanager
def _translate_errors(name: str) -> Iterator[None]:
    """Translates exceptions within the block into those of the runtime."""
    try:
        yield
    except Exception as error:
        denied = protocol_error(error)
        if denied is not None:
            raise denied from error
        refused = refusal_of(error)
        if refused is None:
            if isinstance(error, ToolError):
                raise ResourceError(f"{name}: {error}") from error
            raise
        if refused.kind == "not_found":
            raise ResourceNotFoundError(f"{name}: there is nothing at this URI") from error
        raise ResourceError(f"{name}: {refused.message}") from error
