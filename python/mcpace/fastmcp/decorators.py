"""Decorators without a server: they mark a function for a later ``add_tool``, ``add_resource`` or ``add_prompt``."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def tool(name_or_fn: Any = None, **options: Any) -> Any:
    """Marks a function as a tool, with the options of ``FastMCP.tool``. With or without parentheses."""
    return _mark_function("tool", name_or_fn, options)


def prompt(name_or_fn: Any = None, **options: Any) -> Any:
    """Marks a function as a prompt, with the options of ``FastMCP.prompt``. With or without parentheses."""
    return _mark_function("prompt", name_or_fn, options)


def resource(uri: str, **options: Any) -> Callable[[FunctionT], FunctionT]:
    """Marks a function as a resource, with the options of ``FastMCP.resource``."""
    if callable(uri):
        raise TypeError("The @resource decorator needs a URI: @resource('resource://…')")
    return _mark_function("resource", None, {"uri": uri, **options})  # type: ignore[no-any-return]


def _mark_function(kind: str, name_or_fn: Any, options: dict[str, Any]) -> Any:
    if isinstance(name_or_fn, str):
        options = {"name": name_or_fn, **options}

    def mark(function: FunctionT) -> FunctionT:
        target: Any = getattr(function, "__func__", function)
        target.__fastmcp__ = SimpleNamespace(type=kind, **options)
        return function

    return mark(name_or_fn) if callable(name_or_fn) else mark
