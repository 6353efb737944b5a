"""Dependency markers: defaults and annotations that ask a server to fill a parameter in, and their refusal.

``token: AccessToken = CurrentAccessToken()`` asks the server for the caller's token. A server that does not know the
marker takes ``token`` for an argument, and a client can then send a forged token. A parameter that clients fill in must
therefore carry no marker: neither one of another SDK, nor one of mcpace that only another of its faces knows.

Design constraint: recognizes classes by the package that defines them or their bases, and imports no SDK. Models, enums
and other data types of those packages are data, not markers.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from types import FunctionType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mcpace.server.errors import InvalidSignature


class Marker:
    """Base of mcpace's own markers. A face removes those that it knows before it registers a function."""


FASTMCP_MARKERS = frozenset(
    {
        "CallArgument",
        "CurrentAccessToken",
        "CurrentContext",
        "CurrentFastMCP",
        "CurrentHeaders",
        "CurrentRequest",
        "Dependency",
        "Depends",
        "Progress",
        "TokenClaim",
    }
)
"""Names of the markers that ``mcpace.fastmcp`` exports."""

_PACKAGES = frozenset(
    {"mcp", "mcp_types", "fastmcp", "fastmcp_slim", "fastmcp_tasks", "uncalled_for", "docket"}
    | {"fastapi", "fast_depends", "dependency_injector", "dishka", "wireup", "that_depends", "taskiq_dependencies"}
)
_DATA = (BaseModel, Enum, FieldInfo, str, bytes, int, float, tuple, list, dict, set, frozenset, BaseException)
_INSTEAD = {
    "UserSession": "keep values with ctx.set_state and ctx.get_state of a Context",
    "Shared": "make the value in the lifespan and read it from ctx.lifespan_context",
    "Resolve": "Resolve fills in parameters of MCPServer's tools and of resolvers only; call the function in the body",
}


def refuse_markers(function: str, parameters: Iterable[inspect.Parameter]) -> None:
    """Raises ``InvalidSignature`` where a parameter that no server fills in has a marker."""
    for parameter in parameters:
        for value in _values(parameter):
            owner = value if isinstance(value, type | FunctionType) else type(value)
            package = _package(owner)
            if package is not None:
                raise InvalidSignature(_words(function, parameter.name, owner, package))


def _values(parameter: inspect.Parameter) -> Iterator[Any]:
    """A parameter's default, the metadata of its annotation, and the classes that the annotation names."""
    yield from _default(parameter.default)
    pending = [parameter.annotation]
    while pending:
        annotation = pending.pop()
        origin = get_origin(annotation)
        aliased = alias_value(annotation)
        if aliased is not None:
            pending.append(aliased)
        elif origin is Annotated:
            kind, *metadata = get_args(annotation)
            pending.append(kind)
            for one in metadata:
                yield from _default(one)
        else:
            named = annotation if origin is None else origin
            if isinstance(named, type) and not _is_data(named) and not dataclasses.is_dataclass(named):
                yield named
            pending.extend(get_args(annotation))


def alias_value(annotation: Any) -> Any:
    """The type that an alias stands for; ``None`` for anything else, and where its names are not there at run time."""
    try:
        return getattr(annotation, "__value__", None) or getattr(get_origin(annotation), "__value__", None)
    except NameError:
        return None


def _default(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, FieldInfo):
        yield value.default


def _package(owner: Any) -> str | None:
    """The package of a marker's class or function; ``None`` for anything that is no marker."""
    if not isinstance(owner, type):
        name = owner.__module__ or ""
        return name if _is_foreign(name) else None
    if issubclass(owner, Marker):
        return owner.__module__
    if _is_data(owner):
        return None
    return next((base.__module__ for base in owner.__mro__ if _is_foreign(base.__module__)), None)


def _is_foreign(module: str) -> bool:
    return module.partition(".")[0] in _PACKAGES


def _is_data(kind: type) -> bool:
    return issubclass(kind, _DATA)


def _words(function: str, parameter: str, owner: Any, package: str) -> str:
    name = owner.__name__.lstrip("_")
    origin = package if package.startswith("mcpace.") else package.partition(".")[0]
    instead = _INSTEAD.get(name)
    if instead is None and package.startswith("mcpace."):
        instead = "it belongs to mcpace.fastmcp.FastMCP; with MCPServer use Annotated[T, Resolve(find)] or providers="
    elif instead is None and name in FASTMCP_MARKERS:
        instead = (
            f"import {name} from mcpace.fastmcp if the server is its FastMCP; with MCPServer use "
            "Annotated[T, Resolve(find)] or providers="
        )
    elif instead is None:
        instead = "mcpace has no counterpart: get the value in the function's body"
    return (
        f"Parameter {parameter!r} of {function}: {name} of {origin} marks a value that the server fills in, but this "
        f"server would take it from the client, who could forge it. Instead, {instead}"
    )


def check_nested(function: Callable[..., Any], name: str, known: Iterable[str] = ()) -> None:
    """Raises where a function that the server calls itself has a marker nobody fills in. ``known``: filled in."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError, SyntaxError, AttributeError):
        return
    filled = set(known)
    refuse_markers(name, (one for one in signature.parameters.values() if one.name not in filled))
