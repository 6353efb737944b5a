"""Django's face of the runtime: services and selectors become tools and resources, REST framework's serializers their
schemas, and Django's request cycle surrounds each call.

Design constraint: only importing this package loads Django. A spec is analysed once, at registration; a call reads its
arguments, runs the service and writes its result.

Deliberately absent: the specs themselves, which djangorestframework-services defines. A spec that uses a feature which
isn't compiled here is run by that package's dispatcher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcpace.django.app import MCPServer
    from mcpace.django.auth import AllowAny, AuthBackend, DjangoOAuthToolkit, Principal, TokenBackend
    from mcpace.django.choices import OutputFormat, UnknownArguments
    from mcpace.django.limits import CacheRateLimit
    from mcpace.django.permissions import DjangoPermRequired, ScopeRequired

_WHERE = {
    "app": ("MCPServer",),
    "auth": ("AllowAny", "AuthBackend", "DjangoOAuthToolkit", "Principal", "TokenBackend"),
    "limits": ("CacheRateLimit",),
    "permissions": ("DjangoPermRequired", "ScopeRequired"),
    "choices": ("OutputFormat", "UnknownArguments"),
}
_MODULES = {name: f"mcpace.django.{module}" for module, names in _WHERE.items() for name in names}

__all__ = [
    "AllowAny",
    "AuthBackend",
    "CacheRateLimit",
    "DjangoOAuthToolkit",
    "DjangoPermRequired",
    "MCPServer",
    "OutputFormat",
    "Principal",
    "ScopeRequired",
    "TokenBackend",
    "UnknownArguments",
]


def __getattr__(name: str) -> Any:
    # Not at once: Django imports this package to find its app, before models can be loaded.
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'mcpace.django' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
