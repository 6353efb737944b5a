"""Objects of other SDKs' types on an mcpace server: accepted, translated, or refused with the import to use instead.

An author who changes only the import of the server class keeps ``isinstance(ref, PromptReference)`` with the SDK's
class. Models that the author's functions receive are therefore also instances of the SDK's class of the same name, if
that SDK is loaded.

Design constraint: recognizes classes by the package that defines them, and imports no SDK.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel

from mcpace.server.errors import RegistrationError, UnsupportedOption
from mcpace.types import is_kind

_PACKAGES = frozenset({"mcp", "mcp_types", "fastmcp"})
_TYPES = ("mcp_types", "mcp.types", "mcp.server.elicitation")
"""The SDK's modules of models that an author compares with."""
_AUTH_CONTEXT = "mcp.server.auth.middleware.auth_context"
_shared: dict[type[BaseModel], type[BaseModel]] = {}
"""Maps mcpace's classes to subclasses that also derive from the SDK's class of the same name."""

ValueT = TypeVar("ValueT")


def is_foreign(cls: type) -> bool:
    """Whether a class is defined by another SDK."""
    return cls.__module__.partition(".")[0] in _PACKAGES


def shared(value: ValueT) -> ValueT:
    """Makes a new object also an instance of the SDK's class of the same name, if that SDK is loaded.

    Changes the object and the objects in it in place.
    """
    if any(name in sys.modules for name in _TYPES):
        _share_in_place(value)
    return value


def _share_in_place(value: Any) -> None:
    if isinstance(value, BaseModel):
        for member in vars(value).values():
            _share_in_place(member)
        # pydantic's __setattr__ refuses this attribute.
        object.__setattr__(value, "__class__", _shared_class(type(value)))
    elif isinstance(value, list | dict):
        for member in value.values() if isinstance(value, dict) else value:
            _share_in_place(member)


def _shared_class(cls: type[BaseModel]) -> type[BaseModel]:
    """A class that derives from ``cls`` and the SDK's class of the same name; ``cls`` if the SDK has none."""
    if cls in _shared or not cls.__module__.startswith("mcpace."):
        return _shared.get(cls, cls)
    name = cls.__name__.partition("[")[0]
    for module in filter(None, map(sys.modules.get, _TYPES)):
        theirs = getattr(module, name, None)
        if isinstance(theirs, type) and issubclass(theirs, BaseModel):
            _shared[cls] = made = _derive_class(cls, theirs)
            return made
    return cls


def _derive_class(cls: type[BaseModel], theirs: type[BaseModel]) -> type[BaseModel]:
    make: Any = type(cls)
    cls.model_rebuild()
    with warnings.catch_warnings():
        # Fields of the SDK's class are hidden on purpose.
        warnings.simplefilter("ignore")
        members = {"__module__": cls.__module__, "__doc__": cls.__doc__}
        made: type[BaseModel] = make(cls.__name__, (cls, theirs), members, defer_build=True)
    # Validation and serialization stay those of `cls`: only `isinstance` sees the SDK's class.
    for name in ("fields", "core_schema", "validator", "serializer", "complete"):
        type.__setattr__(made, f"__pydantic_{name}__", getattr(cls, f"__pydantic_{name}__"))
    return made


def remember_principal(principal: Any) -> None:
    """Stores a call's token for the official SDK's own ``get_access_token``, if its module is loaded."""
    module = sys.modules.get(_AUTH_CONTEXT)
    if module is not None:
        user = None if principal is None else module.AuthenticatedUser(principal)
        module.auth_context_var.set(user)


def tool_keywords(tool: Any) -> dict[str, Any] | None:
    """The keywords of ``Tool.from_function`` that translate the official SDK's ``Tool``; ``None`` for other objects."""
    if not _is_their(tool, "Tool", "fn", "parameters"):
        return None
    structured = getattr(getattr(tool, "fn_metadata", None), "output_schema", None) is not None
    keywords = {
        name: getattr(tool, name, None) for name in ("name", "title", "description", "annotations", "icons", "meta")
    }
    return {"fn": _author_function(tool.fn), **keywords, "structured_output": None if structured else False}


def prompt_keywords(prompt: Any) -> dict[str, Any] | None:
    """The keywords of ``Prompt.from_function`` that translate the official SDK's ``Prompt``; ``None`` for other
    objects."""
    if not _is_their(prompt, "Prompt", "fn"):
        return None
    keywords = {name: getattr(prompt, name, None) for name in ("name", "title", "description", "icons")}
    return {"fn": _author_function(prompt.fn), **keywords}


def check_entry(entry: Any, own: type | tuple[type, ...], method: str, instead: str) -> None:
    """Raises ``RegistrationError`` for an object that ``method`` does not accept."""
    if isinstance(entry, own):
        return
    cls = type(entry)
    raise RegistrationError(
        f"{method} takes {instead}, not a {cls.__module__}.{cls.__qualname__}"
        + (f": from mcpace import {cls.__name__}" if is_foreign(cls) and _is_ours(cls.__name__) else "")
    )


def check_middleware(middleware: Any) -> None:
    """Raises ``UnsupportedOption`` for middleware that another SDK defines for its own runtime."""
    cls = middleware if isinstance(middleware, type) else type(middleware)
    if is_foreign(cls):
        raise UnsupportedOption(
            f"middleware: {cls.__module__}.{cls.__qualname__} works on its own SDK's runtime only. mcpace signs the "
            "state of rounds and makes OpenTelemetry spans by itself; leave it out"
        )


def _is_their(entry: Any, name: str, *members: str) -> bool:
    return is_kind(type(entry), (), name) and all(hasattr(entry, member) for member in members)


def _author_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The author's function without pydantic's ``validate_call``, in which the SDK wraps it."""
    inner: Callable[..., Any] = getattr(function, "raw_function", function)
    return inner


def _is_ours(name: str) -> bool:
    import mcpace

    return name in mcpace.__all__
