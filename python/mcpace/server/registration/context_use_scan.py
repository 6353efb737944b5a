"""Detection of functions that find their context by themselves, without a parameter for it.

SDKs keep the request in context variables, which are not set when the runtime calls a function itself. So the SDK keeps
calling each function that could read one. A function could read one if it, or a function of the program that it names,
names one of :data:`WAYS`, or names a function or class of an SDK whose code reaches a context variable.

Design constraint: the scan runs no code of the program. Attributes are looked up statically, since attribute access may
change a class. The scan can't see everything (`getattr` with a string built at run time); docs/rough-edges.md lists the
limits.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

# Names through which any code reaches the current request, on any object.
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
        "get_session",
        "fastmcp_request_ctx",
        "current_context",
        "from_thread",
        "CurrentContext",
    }
)
# Names through which a function changes the components that its session may see.
CHANGES = frozenset({"enable_components", "disable_components", "reset_visibility"})
SDKS = frozenset({"mcp", "mcp_types", "fastmcp", "mcpace"})
"""Packages that keep a request in context variables."""
MOST = 2_000
"""Maximum number of functions that a scan follows."""
TOO_MANY = "it calls more than can be looked through"


class Owner(Enum):
    """The owner of a function's code."""

    PROGRAM = "the server's own program"
    SDK = "an SDK"
    LIBRARY = "the standard library, or an installed package"


def find_context_use(function: Any, server: object) -> str | None:
    """The reason why a function may depend on state that the SDK sets up around a call; ``None`` if none was found."""
    why = find_names(function, WAYS)
    if why is not None:
        return why
    for _, values in _reachable_code(function, Owner.PROGRAM):
        for value in values:
            if value is server:
                return "it uses its server"
            if type(value) is ContextVar and _is_of_sdk(value):
                return f"it uses {value.name}"
            for part in _functions_of(value):
                if _owner_of_function(part) is Owner.SDK and reads_context(part):
                    named = part if _is_code(value) else value if _is_instance(value, type) else type(value)
                    return f"it uses {named.__name__}"
    return None


def find_names(function: Any, names: frozenset[str]) -> str | None:
    """Says which of ``names`` a function uses, itself or through functions of its program; ``None`` if it uses none."""
    try:
        found = {name for named, _ in _reachable_code(function, Owner.PROGRAM) for name in named & names}
    except _TooMany:
        return TOO_MANY
    return f"it uses {min(found)}" if found else None


@functools.cache
def reads_context(function: FunctionType) -> bool:
    """Whether a function of an SDK reaches a context variable, directly or through other functions of SDKs."""
    try:
        return any(type(value) is ContextVar for _, values in _reachable_code(function, Owner.SDK) for value in values)
    except _TooMany:
        return True


class _TooMany(Exception):
    """The scan reached more functions than it follows."""


def _reachable_code(start: Any, owner: Owner) -> Iterator[tuple[frozenset[str], list[Any]]]:
    """Visits each function that is reachable from ``start`` through functions of ``owner``. Yields its names, and the
    values of these names. Raises :class:`_TooMany`."""
    seen: set[int] = set()
    waiting = list(_functions_of(start))
    while waiting:
        one = waiting.pop()
        if id(one.__code__) in seen:
            continue
        seen.add(id(one.__code__))
        if len(seen) > MOST:
            raise _TooMany
        names = _names_in(one.__code__)
        values = list(_values_of(one, names))
        yield names, values
        waiting.extend(part for value in values for part in _functions_of(value) if _owner_of_function(part) is owner)


def _names_in(code: CodeType) -> frozenset[str]:
    """All names in a function's code, including the functions within it."""
    return frozenset(code.co_names).union(*(_names_in(one) for one in code.co_consts if isinstance(one, CodeType)))


def _values_of(function: FunctionType, names: frozenset[str]) -> Iterator[Any]:
    """The values of a function's names: globals, imported modules, closures, members of modules."""
    namespace = function.__globals__
    found = [namespace[name] for name in names if name in namespace]
    found += _imported_modules(function, names)
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    modules: set[int] = set()
    while found:
        value = found.pop()
        yield value
        if (
            _is_instance(value, ModuleType)
            and id(value) not in modules
            and _owner_of(value.__name__) is not Owner.LIBRARY
        ):
            modules.add(id(value))
            found += [member for member in map(vars(value).get, names) if member is not None]


def _imported_modules(function: FunctionType, names: frozenset[str]) -> list[ModuleType]:
    """The loaded modules that the function itself imports."""
    package = function.__globals__.get("__package__") or ""
    places = [name for name in names if name in sys.modules or f"{package}.{name}" in sys.modules]
    if not places:
        return []
    imports = {one.argval for one in _all_instructions(function.__code__) if one.opname == "IMPORT_NAME"}
    named = [sys.modules.get(name) or sys.modules[f"{package}.{name}"] for name in places if name in imports]
    return [module for module in named if module is not None]


def _all_instructions(code: CodeType) -> Iterator[Any]:
    import dis

    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_instructions(constant)


def _functions_of(value: Any) -> Iterator[FunctionType]:
    """The functions that run when a value is used: its own layers, or the methods of its class."""
    if _is_code(value):
        yield from _unwrapped_functions(value)
        return
    kind = value if _is_instance(value, type) else type(value)
    for base in kind.__mro__:
        if _owner_of(base.__module__) is not Owner.LIBRARY:
            # A copy, because another thread may change the class.
            for member in tuple(vars(base).values()):
                yield from _unwrapped_functions(member)


_WRAPPERS = (functools.partial, functools.partialmethod, functools.cached_property)
_METHODS = (MethodType, staticmethod, classmethod)


def _is_code(value: Any) -> bool:
    """Whether a value is a function or wraps one."""
    return (
        _is_instance(value, FunctionType, property, *_WRAPPERS, *_METHODS)
        or inspect.getattr_static(value, "__wrapped__", None) is not None
    )


def _unwrapped_functions(value: Any) -> Iterator[FunctionType]:
    """A function, and the functions within a partial, a method, a decorated function."""
    for _ in range(64):
        if _is_instance(value, FunctionType):
            yield value
        if _is_instance(value, *_WRAPPERS):
            value = value.func
        elif _is_instance(value, *_METHODS):
            value = value.__func__
        elif _is_instance(value, property):
            value = value.fget
        elif inspect.getattr_static(value, "__wrapped__", None) is not None:
            value = value.__wrapped__
        else:
            return


def _is_instance(value: Any, *kinds: type) -> bool:
    """``isinstance`` by the real type, even if a proxy claims another class."""
    return issubclass(type(value), kinds)


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """The folders of the standard library and of installed packages. Finding them takes milliseconds."""
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(str(Path(sysconfig.get_path(name)).resolve()) for name in names)


def _owner_of_function(function: FunctionType) -> Owner:
    # A wrapper copies its function's `__module__`, but keeps its own globals.
    return _owner_of(function.__globals__.get("__name__"))


def _owner_of(module: Any) -> Owner:
    if not isinstance(module, str):
        return Owner.LIBRARY
    if module.partition(".")[0] in SDKS:
        return Owner.SDK
    file = getattr(sys.modules.get(module), "__file__", None)
    return Owner.LIBRARY if file is None or _is_installed(file) else Owner.PROGRAM


@functools.cache
def _is_installed(file: str) -> bool:
    return str(Path(file).resolve()).startswith(_library_folders())


def _is_of_sdk(variable: ContextVar[Any]) -> bool:
    modules = [module for name, module in tuple(sys.modules.items()) if name.partition(".")[0] in SDKS]
    return any(one is variable for module in modules for one in tuple(vars(module).values()))
