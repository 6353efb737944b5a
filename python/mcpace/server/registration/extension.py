"""Extensions of the protocol: a named bundle of tools, resources and a hook around tool calls, declared to clients.

Deliberately absent: methods of an extension's own, which the runtime can't serve yet; an extension that brings some is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpace.server.errors import UnsupportedOption

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_IDENTIFIER = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/{_NAME}")

CallNext = Callable[[Any], Awaitable[Any]]
"""Runs the rest of the chain."""


@dataclass(frozen=True)
class ToolBinding:
    """A tool of an extension; ``kwargs`` are those of ``add_tool``."""

    fn: Callable[..., Any]
    meta: dict[str, Any] | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ResourceBinding:
    """A resource of an extension."""

    resource: Any


class Extension:
    """Base of extensions: set ``identifier`` (``com.example/name``), and override methods as needed."""

    identifier: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        identifier = cls.__dict__.get("identifier")
        if identifier is not None:
            check_identifier(identifier, cls.__name__)

    def settings(self) -> dict[str, Any]:
        """The settings that are declared to clients."""
        return {}

    def tools(self) -> Sequence[ToolBinding]:
        """The extension's tools."""
        return ()

    def resources(self) -> Sequence[ResourceBinding]:
        """The extension's resources."""
        return ()

    def methods(self) -> Sequence[Any]:
        """The extension's own protocol methods. The runtime can't serve any yet."""
        return ()

    async def intercept_tool_call(self, params: Any, ctx: Any, call_next: CallNext) -> Any:
        """The hook around each tool call: ``params`` has ``name`` and ``arguments``. By default it calls
        ``call_next``."""
        del params
        return await call_next(ctx)


def check_identifier(identifier: Any, owner: str) -> None:
    """Raises ``TypeError`` for an invalid identifier."""
    if not isinstance(identifier, str) or not _IDENTIFIER.fullmatch(identifier):
        raise TypeError(
            f"{owner}.identifier must be a `vendor-prefix/name` string (reverse-DNS prefix required), "
            f"got {identifier!r}"
        )


def check(extension: Any, known: Sequence[Any]) -> None:
    """Raises an error for an extension that can't be added."""
    identifier = getattr(extension, "identifier", None)
    check_identifier(identifier, type(extension).__name__)
    if any(one.identifier == identifier for one in known):
        raise ValueError(f"Extension {identifier!r} is already registered")
    methods = [getattr(method, "method", method) for method in extension.methods()]
    if methods:
        raise UnsupportedOption(
            f"Extension {identifier!r} brings the methods {', '.join(map(str, methods))}: mcpace serves the protocol's "
            "own methods only"
        )


def intercepts(extension: Any) -> bool:
    """Whether an extension has a hook around tool calls."""
    own = type(extension).intercept_tool_call
    return not any(
        base.__name__ == "Extension" and base.__dict__.get("intercept_tool_call") is own
        for base in type(extension).__mro__
    )


def require_client_extension(ctx: Any, identifier: str) -> None:
    """Raises the protocol's error if the client of a call (a ``RequestContext``) did not declare an extension."""
    from mcpace.server.errors import MCPError
    from mcpace.types import MISSING_REQUIRED_CLIENT_CAPABILITY

    capabilities = ctx.session.client_capabilities
    if identifier not in ((capabilities.extensions if capabilities else None) or {}):
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"Client did not declare required extension {identifier!r}",
            {"requiredCapabilities": {"extensions": {identifier: {}}}},
        )
