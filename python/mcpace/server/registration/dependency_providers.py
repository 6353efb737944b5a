"""Providers: functions of the server that fill in parameters by their names.

``MCPServer(providers={"user": current_user, "db": session})``: the provider fills a parameter named ``user`` or ``db``,
and clients do not see it. A provider is a function, a coroutine function, or a generator. A generator yields its value,
and resumes after the call with the call's exception, if any. Providers take other providers by name, and the context by
annotation. Each provider runs at most once in a call, and only if it is needed.

Design constraint: dependencies are resolved at registration. The result is a function without these parameters, so the
rest of the server sees an ordinary one. It is a plain function if all of its parts are plain, and then keeps the fast
path.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from mcpace.server.calls.context import Context
from mcpace.server.errors import InvalidSignature, RegistrationError
from mcpace.server.registration.injection import find_context, hints_of
from mcpace.server.registration.markers import check_nested
from mcpace.server.registration.signature import is_async, name_of, signature_of

PROVIDERS_CONTEXT = "mcpace_context"
"""The parameter that passes the context to a function whose providers, but not the function itself, take it."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A function that fills in parameters of its name."""

    name: str
    function: Callable[..., Any]
    kind: Literal["plain", "coroutine", "generator", "async-generator"]
    context: str | None
    """The provider's parameter for the context."""
    needs: tuple[str, ...]
    """The other providers that it takes as parameters."""
    gives: Any
    """The annotated type of its value; ``Any`` without an annotation."""

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop."""
        return self.kind in ("coroutine", "async-generator")


class Providers:
    """All providers of a server."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]] | None) -> None:
        if functions is not None and not isinstance(functions, Mapping):
            raise RegistrationError(f"providers are functions by name, {{'user': …}}, not {functions!r}")
        self._all = {name: _make_provider(name, function) for name, function in (functions or {}).items()}
        for name, one in self._all.items():
            unknown = [need for need in one.needs if need not in self._all]
            if unknown:
                raise RegistrationError(
                    f"provider {name!r} has the parameter {unknown[0]!r}, which nobody fills in: a provider takes "
                    "other providers by name, and the context by annotation"
                )
        for name in self._all:
            self._dependency_order(name, ())

    def __bool__(self) -> bool:
        return bool(self._all)

    def applied(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function without the parameters that providers fill in; the function itself if it has none.

        Raises ``InvalidSignature`` if the types of a parameter and its provider are incompatible.
        """
        if not self._all or not callable(function):
            return function
        signature = signature_of(function)
        wanted = [name for name in signature.parameters if name in self._all]
        if not wanted:
            return function
        for name in wanted:
            _check_types(function, signature.parameters[name], self._all[name])
        steps = self._providers_to_run(wanted)
        own = find_context(function)
        takes_context = own is not None or any(step.context for step in steps)
        call = _call_with_providers(function, steps, wanted, own, own or (PROVIDERS_CONTEXT if takes_context else None))

        left = [parameter for name, parameter in signature.parameters.items() if name not in wanted]
        if takes_context and own is None:
            left.append(inspect.Parameter(PROVIDERS_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=Context))
        functools.update_wrapper(call, function)
        call.__name__ = name_of(function)
        # `inspect.signature` reads `__signature__`; `__wrapped__` would lead it to the inner function.
        del call.__wrapped__  # type: ignore[attr-defined]
        call.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        hints = hints_of(function)
        call.__annotations__ = {
            one.name: hints.get(one.name, one.annotation) for one in left if one.annotation is not one.empty
        }
        if signature.return_annotation is not signature.empty:
            call.__annotations__["return"] = hints.get("return", signature.return_annotation)
        return call

    def _providers_to_run(self, wanted: list[str]) -> list[Provider]:
        """The providers to run, each after the providers that it needs."""
        order: dict[str, None] = {}
        for name in wanted:
            order |= dict.fromkeys(self._dependency_order(name, ()))
        return [self._all[name] for name in order]

    def _dependency_order(self, name: str, above: tuple[str, ...]) -> list[str]:
        if name in above:
            raise RegistrationError(f"providers need each other in a circle: {' → '.join((*above, name))}")
        found: list[str] = []
        for need in self._all[name].needs:
            found += [one for one in self._dependency_order(need, (*above, name)) if one not in found]
        return [*found, name]


def _make_provider(name: str, function: Callable[..., Any]) -> Provider:
    if not name.isidentifier() or name.startswith("_"):
        raise RegistrationError(f"provider {name!r}: its name is a parameter's, such as 'user'")
    if not callable(function):
        raise RegistrationError(f"provider {name!r}: {function!r} is no function; give lambda: value for a constant")
    signature = signature_of(function)
    context = find_context(function)
    check_nested(function, f"provider {name!r}", [] if context is None else [context])
    needs = tuple(
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.name != context and parameter.default is parameter.empty
    )
    kind: Literal["plain", "coroutine", "generator", "async-generator"] = "plain"
    if inspect.isasyncgenfunction(function):
        kind = "async-generator"
    elif inspect.isgeneratorfunction(function):
        kind = "generator"
    elif is_async(function):
        kind = "coroutine"
    gives = hints_of(function).get("return", Any)
    if inspect.isclass(function):
        gives = function
    elif kind.endswith("generator"):
        arguments = get_args(gives)
        is_known = get_origin(gives) in (Iterator, AsyncIterator, Generator, AsyncGenerator) and bool(arguments)
        gives = arguments[0] if is_known else Any
    return Provider(name, function, kind, context, needs, gives)


def _check_types(function: Callable[..., Any], parameter: inspect.Parameter, provider: Provider) -> None:
    """Compares classes only; other annotations are left to type checkers."""
    wanted = _classes_of(hints_of(function).get(parameter.name, Any))
    given = _classes_of(provider.gives)
    if wanted is None or given is None:
        return
    if not any(issubclass(one, arm) or issubclass(arm, one) for one in given for arm in wanted):
        raise InvalidSignature(
            f"Parameter {parameter.name!r} of {name_of(function)!r} is annotated {_class_names(wanted)}, and the "
            f"provider of that name gives {_class_names(given)}. Change the annotation, or the parameter's name where "
            "it is another thing"
        )


def _classes_of(annotation: Any) -> tuple[type, ...] | None:
    """The classes that an annotation allows; ``None`` for annotations other than classes."""
    if get_origin(annotation) is Annotated:
        return _classes_of(get_args(annotation)[0])
    if get_origin(annotation) in (typing.Union, types.UnionType):
        arms = [_classes_of(arm) for arm in get_args(annotation)]
        return None if any(arm is None for arm in arms) else tuple(one for arm in arms for one in arm or ())
    if annotation is None:
        return (type(None),)
    if annotation is Any:  # isinstance(Any, type) holds since Python 3.11
        return None
    kind = get_origin(annotation) or annotation
    # Protocols are structural: subclass checks say nothing about them.
    return (kind,) if isinstance(kind, type) and not getattr(kind, "_is_protocol", False) else None


def _class_names(arms: tuple[type, ...]) -> str:
    return " | ".join("None" if arm is type(None) else arm.__qualname__ for arm in arms)


def _call_with_providers(
    function: Callable[..., Any], steps: list[Provider], wanted: list[str], own: str | None, context: str | None
) -> Callable[..., Any]:
    """A function that runs the providers, and then the function. ``own`` is the function's own parameter for the
    context; ``context`` is the parameter through which the context arrives."""
    if is_async(function) or any(step.is_async for step in steps):
        return _async_call(function, steps, wanted, own, context)

    if any(step.kind == "generator" for step in steps):
        from contextlib import ExitStack, contextmanager

        entered = {step.name: contextmanager(step.function) for step in steps if step.kind == "generator"}

        def closing(**keywords: Any) -> Any:
            given = _context_of(keywords, own, context)
            made: dict[str, Any] = {}
            with ExitStack() as stack:
                for step in steps:
                    filled = _provider_keywords(step, made, given)
                    begin = entered.get(step.name)
                    made[step.name] = step.function(**filled) if begin is None else stack.enter_context(begin(**filled))
                return function(**keywords, **{name: made[name] for name in wanted})

        return closing

    def plain(**keywords: Any) -> Any:
        given = _context_of(keywords, own, context)
        made: dict[str, Any] = {}
        for step in steps:
            made[step.name] = step.function(**_provider_keywords(step, made, given))
        return function(**keywords, **{name: made[name] for name in wanted})

    return plain


def _async_call(
    function: Callable[..., Any], steps: list[Provider], wanted: list[str], own: str | None, context: str | None
) -> Callable[..., Awaitable[Any]]:
    from contextlib import AsyncExitStack, asynccontextmanager

    from mcpace.server.calls.invocation import call_function, entered_in_thread

    runs_async = is_async(function)

    async def value(step: Provider, filled: dict[str, Any], stack: AsyncExitStack) -> Any:
        if step.kind == "async-generator":
            return await stack.enter_async_context(asynccontextmanager(step.function)(**filled))
        if step.kind == "generator":
            return await stack.enter_async_context(entered_in_thread(step.function, filled))
        return await call_function(step.function, step.is_async, filled)

    async def call(**keywords: Any) -> Any:
        given = _context_of(keywords, own, context)
        made: dict[str, Any] = {}
        async with AsyncExitStack() as stack:
            for step in steps:
                made[step.name] = await value(step, _provider_keywords(step, made, given), stack)
            return await call_function(function, runs_async, keywords | {name: made[name] for name in wanted})

    return call


def _context_of(keywords: dict[str, Any], own: str | None, context: str | None) -> Any:
    if context is None:
        return None
    return keywords[context] if own is not None else keywords.pop(context)


def _provider_keywords(step: Provider, made: Mapping[str, Any], context: Any) -> dict[str, Any]:
    filled = {need: made[need] for need in step.needs}
    if step.context is not None:
        filled[step.context] = context
    return filled
