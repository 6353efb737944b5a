"""Whether a function finds its context by itself, without a parameter for it.

SDKs keep the request in context variables; a function that the runtime calls itself has none of theirs set. So a
function that could look (it, or any function of its own program that it calls by name, names one of the ways) stays
with the SDK.

Design constraint: reading code can't see everything (`getattr` by a string built at run time). What is looked for is
what the SDKs document; docs/rough-edges.md says the rest.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

# Names by which code of a request is reached from anywhere.
WAYS = frozenset(
    {
        "get_context",
        "request_context",
        "request_ctx",
        "get_access_token",
        "auth_context_var",
        "get_http_request",
        "get_http_headers",
        "get_server",
        "fastmcp_request_ctx",
        "current_context",
        "from_thread",
        "CurrentContext",
    }
)
# Names by which a function changes what its session may see.
CHANGES = frozenset({"enable_components", "disable_components", "reset_visibility"})
MOST = 2_000
"""How many functions are followed at most: a program that calls more of its own is not looked through."""


def looks_around(function: Any, server: object) -> str | None:
    """Why the function may depend on what the SDK sets up around a call; ``None`` if nothing says so."""
    return uses(function, WAYS, server)


def uses(function: Any, ways: frozenset[str], server: object = None) -> str | None:
    """What of ``ways`` the function uses, itself or through what it calls, or that it uses its server."""
    seen: set[int] = set()
    waiting = [_plain(function)]
    while waiting:
        one = waiting.pop()
        code = getattr(one, "__code__", None)
        if code is None or id(code) in seen:
            continue
        seen.add(id(code))
        if len(seen) > MOST:
            return "it calls more than can be looked through"
        names = _names(code)
        found = names & ways
        if found:
            return f"it uses {min(found)}"
        for value in _reached(one, names):
            if server is not None and value is server:
                return "it uses its server"
            follow = _plain(value)
            if isinstance(follow, FunctionType) and _is_own(follow):
                waiting.append(follow)
    return None


def _names(code: CodeType) -> set[str]:
    """All names in a function's code, that of functions within it included."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _reached(function: Any, names: set[str]) -> Iterator[Any]:
    """What the function's names stand for: globals, what it closes over, members of modules, methods of classes."""
    namespace = getattr(function, "__globals__", {})
    for name in names:
        if name not in namespace:
            continue
        value = namespace[name]
        yield value
        if isinstance(value, ModuleType) and _is_own(value):
            yield from (member for member in map(vars(value).get, names) if member is not None)
        elif isinstance(value, type) and _is_own(value):
            # Looking at a model may build it, which changes its members.
            yield from tuple(vars(value).values())
    for cell in getattr(function, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue


def _plain(value: Any) -> Any:
    """The function within a partial, a method, a decorated function."""
    while isinstance(value, functools.partial):
        value = value.func
    value = inspect.unwrap(value) if callable(value) and hasattr(value, "__wrapped__") else value
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    return getattr(value, "__func__", value)


@functools.cache
def _libraries() -> tuple[str, ...]:
    """The folders of the standard library and of installed packages. Finding them takes milliseconds."""
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(str(Path(sysconfig.get_path(name)).resolve()) for name in names)


def _is_own(value: Any) -> bool:
    """Whether it is of the server's own program: not of the standard library, not of an installed package."""
    name = getattr(value, "__name__", None) if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    module = sys.modules.get(name or "")
    file = getattr(module, "__file__", None)
    return file is not None and not str(Path(file).resolve()).startswith(_libraries())
