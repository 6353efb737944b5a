"""Parameters that the server fills in: the context, and the values of resolvers.

A parameter ``Annotated[T, Resolve(find)]`` is filled by running ``find`` first. A resolver takes other resolvers, the
tool's arguments by name and the context; it returns a value, or a question for the client: :class:`Elicit`,
:class:`Sample`, :class:`ListRoots`. The parameter then gets the answer, or the user's reaction with
``Annotated[ElicitationResult[T], …]``.

Design constraint: the source of each parameter is determined at registration.
:mod:`mcpace.server.registration.resolvers` runs the resolvers of a call.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel

from mcpace.server.calls.context import Context
from mcpace.server.calls.elicitation import AcceptedElicitation, CancelledElicitation, DeclinedElicitation
from mcpace.server.calls.session import check_tool_results
from mcpace.server.errors import InvalidSignature
from mcpace.server.registration.markers import Marker, check_nested
from mcpace.server.registration.signature import is_async, name_of
from mcpace.types import (
    CreateMessageRequestParams,
    IncludeContext,
    InputRequiredResult,
    ModelPreferences,
    SamplingMessage,
    Tool,
    ToolChoice,
    is_kind,
)

SchemaT = TypeVar("SchemaT", bound=BaseModel)


class Resolve(Marker):
    """Marks a parameter that a function fills in: ``Annotated[User, Resolve(current_user)]``."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn


class Elicit(Generic[SchemaT]):
    """A resolver's question to the user: a form of a model with simple fields."""

    def __init__(self, message: str, schema: type[SchemaT]) -> None:
        self.message = message
        self.schema = schema


class Sample:
    """A resolver's question to the client's model."""

    def __init__(
        self,
        messages: Sequence[SamplingMessage],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        include_context: IncludeContext | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        model_preferences: ModelPreferences | None = None,
        tools: Sequence[Tool] | None = None,
        tool_choice: ToolChoice | None = None,
    ) -> None:
        self.params = CreateMessageRequestParams(
            messages=list(messages),
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            include_context=include_context,
            temperature=temperature,
            stop_sequences=stop_sequences,
            metadata=metadata,
            model_preferences=model_preferences,
            tools=None if tools is None else list(tools),
            tool_choice=tool_choice,
        )
        check_tool_results(self.params.messages)


class ListRoots:
    """A resolver's question for the client's roots."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a resolver's parameter."""

    kind: Literal["context", "resolver", "argument"]
    resolver: Callable[..., Any] | None = None
    wants_outcome: bool = False


@dataclass(frozen=True, slots=True)
class ResolverPlan:
    """The instructions for running a resolver."""

    fn: Callable[..., Any]
    sources: Mapping[str, Source]
    is_async: bool
    key: str
    """The key of its question on the wire, equal in all rounds and processes."""


def find_context(function: Callable[..., Any]) -> str | None:
    """The parameter that takes the context, if there is one."""
    for name, annotation in hints_of(function).items():
        if name != "return" and _is_context(annotation):
            return name
    return None


def find_resolved(function: Callable[..., Any]) -> dict[str, Source]:
    """The parameters that resolvers fill in."""
    hints = hints_of(function)
    found = {}
    for name in inspect.signature(function).parameters:
        annotation = hints.get(name)
        source = _resolver_source(annotation)
        if source is not None:
            found[name] = source
        elif get_origin(annotation) is not Annotated and _mentions_resolve(annotation):
            raise InvalidSignature(
                f"Parameter {name!r} of {name_of(function)!r} wraps `Resolve(...)` in a union; annotate the parameter "
                "directly as `Annotated[T, Resolve(...)]`"
            )
    return found


def returns_questions(function: Callable[..., Any]) -> bool:
    """Whether a function's annotation says that it may return an ``InputRequiredResult``."""
    return _may_ask(hints_of(function).get("return"))


def plans_of(resolved: Mapping[str, Source], arguments: set[str]) -> dict[Hashable, ResolverPlan]:
    """The plans of all resolvers that a tool's parameters need. Raises ``InvalidSignature`` for a circular dependency,
    and for a parameter without a source.
    """
    plans: dict[Hashable, ResolverPlan] = {}
    names: dict[str, int] = {}

    def plan(function: Callable[..., Any], above: tuple[Hashable, ...]) -> None:
        identity = identity_of(function)
        if identity in above:
            raise InvalidSignature(f"Resolver {name_of(function)!r} has a cyclic dependency")
        if identity in plans:
            return
        base = _qualified(function)
        count = names.get(base, 0)
        names[base] = count + 1
        hints = hints_of(function)
        sources = {
            parameter: _source_of(function, parameter, hints.get(parameter), arguments)
            for parameter in inspect.signature(function).parameters
        }
        filled = [parameter for parameter, source in sources.items() if source.kind != "argument"]
        check_nested(function, f"resolver {name_of(function)!r}", filled)
        _check_questions(hints.get("return"), name_of(function))
        plans[identity] = ResolverPlan(function, sources, is_async(function), base if count == 0 else f"{base}#{count}")
        for source in sources.values():
            if source.resolver is not None:
                plan(source.resolver, (*above, identity))

    for source in resolved.values():
        if source.resolver is not None:
            plan(source.resolver, ())
    return plans


def identity_of(function: Callable[..., Any]) -> Hashable:
    """The identity of a resolver. Each access to a bound method creates a new object, so its parts are compared."""
    owner = getattr(function, "__self__", None)
    if owner is None:
        return id(function)
    underlying = getattr(function, "__func__", None)
    return (id(underlying) if underlying is not None else getattr(function, "__name__", id(function)), id(owner))


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """A function's or callable object's type hints; none if they can't be evaluated, which is reported elsewhere."""
    target = function if inspect.isroutine(function) else getattr(type(function), "__call__", function)  # noqa: B004
    if not inspect.isroutine(target):
        target = function
    try:
        return typing.get_type_hints(inspect.unwrap(target), include_extras=True)
    except Exception:
        return {}


def _source_of(function: Callable[..., Any], parameter: str, annotation: Any, arguments: set[str]) -> Source:
    if annotation is not None and _is_context(annotation):
        return Source("context")
    source = _resolver_source(annotation)
    if source is not None:
        return source
    if parameter in arguments:
        return Source("argument")
    raise InvalidSignature(
        f"Resolver {name_of(function)!r} parameter {parameter!r} cannot be resolved: expected a Context, an "
        "Annotated[_, Resolve(...)], or a tool argument by name"
    )


def _resolver_source(annotation: Any) -> Source | None:
    if get_origin(annotation) is not Annotated:
        return None
    kind, *metadata = get_args(annotation)
    for marker in metadata:
        if _is_resolve(marker):
            return Source("resolver", marker.fn, _wants_outcome(kind))
    return None


def _is_resolve(marker: Any) -> bool:
    return is_kind(type(marker), Resolve, "Resolve")


def _is_context(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if _is_context_class(annotation) or _is_context_class(get_origin(annotation)):
        return True
    return _is_union(annotation) and any(_is_context(arm) for arm in get_args(annotation))


def _is_context_class(annotation: Any) -> bool:
    return is_kind(annotation, Context, "Context")


def _mentions_resolve(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return any(_is_resolve(marker) for marker in get_args(annotation)[1:])
    return any(_mentions_resolve(argument) for argument in get_args(annotation))


def _may_ask(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _may_ask(get_args(annotation)[0])
    try:
        aliased = getattr(annotation, "__value__", None)
    except NameError:
        # An alias of names that are undefined at run time declares nothing.
        return False
    if aliased is not None:
        return _may_ask(aliased)
    if _is_union(annotation):
        return any(_may_ask(arm) for arm in get_args(annotation))
    return is_kind(annotation, InputRequiredResult, "InputRequiredResult")


def _wants_outcome(kind: Any) -> bool:
    """Whether an annotation is a class of elicitation results, or a union of them."""
    aliased = getattr(kind, "__value__", None) or getattr(get_origin(kind), "__value__", None)
    kind = aliased if aliased is not None else kind
    members = get_args(kind) if get_origin(kind) is not None else (kind,)
    outcomes = (AcceptedElicitation, DeclinedElicitation, CancelledElicitation)
    names = [outcome.__name__ for outcome in outcomes]
    return any(is_kind(get_origin(member) or member, outcomes, *names) for member in members)


def _check_questions(returned: Any, name: str) -> None:
    arms = get_args(returned) if _is_union(returned) else (returned,)
    kinds = (Elicit, Sample, ListRoots)
    questions = [arm for arm in arms if is_kind(get_origin(arm) or arm, kinds, *(kind.__name__ for kind in kinds))]
    if len(questions) > 1:
        raise InvalidSignature(
            f"Resolver {name!r} return annotation has multiple Elicit/Sample/ListRoots arms; "
            "a resolver asks one question - split it into separate resolvers"
        )


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (typing.Union, types.UnionType)


def _qualified(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}:{name}"
