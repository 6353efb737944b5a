"""From an ``MCPServer`` to a running one: the compiled part's registry, and the official SDK's keywords.

Design constraint: loaded by whoever runs a server. An option that the runtime doesn't have is refused by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from mcpace import __version__, _core
from mcpace.server.errors import UnsupportedOption

if TYPE_CHECKING:
    from mcpace.server.app import MCPServer


def core_of(server: MCPServer[Any]) -> _core.Server:
    """The compiled part's registry of a server, still empty."""
    inside = server._inside
    options: dict[str, Any] = {
        "title": server.title,
        "description": server.description,
        "instructions": server.instructions,
        "website_url": server.website_url,
        "icons": None if server.icons is None else to_json(inside.icons),
        "ttl_ms": inside.cache.ttl_ms or None,
        "cache_scope": inside.cache.scope if inside.cache.scope != "private" else None,
        "key": inside.state_key(),
        "extensions": to_json(inside.declared) if inside.declared else None,
        "open": True,
        "limiter": inside.limiter_of_core(),
    }
    given = {name: value for name, value in options.items() if value is not None}
    return _core.Server(server.name, server.version or __version__, **given)


# The official SDK's keywords that the runner's settings call otherwise.
_RENAMED = {
    "streamable_http_path": "path",
    "stateless_http": "stateless",
    "max_request_body_size": "max_body",
    "session_idle_timeout": "session_idle_s",
    "retry_interval": "retry_s",
}
# Those whose `None` there means what leaving them out means here.
_LIMITS = {"max_request_body_size", "session_idle_timeout", "max_sessions", "retry_interval"}
_REFUSED = {
    "event_store": "the runtime keeps the events of streams itself, so that they can be taken up again",
    "message_path": "the runtime's are /sse and /messages",
    "sse_path": "the runtime's are /sse and /messages",
}
_DEFAULTS: dict[str, Any] = {"event_store": None, "message_path": "/messages/", "sse_path": "/sse"}


def options_of(transport: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The runner's settings by name. Raises ``UnsupportedOption`` or ``TypeError`` for one that it doesn't have."""
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name in _REFUSED:
            if value != _DEFAULTS[name]:
                raise UnsupportedOption(f"{name}={value!r}: {_REFUSED[name]}; leave it out")
        elif name == "transport_security":
            options |= _security(value)
        elif value is not None or name not in _LIMITS:
            # Retrying is told in milliseconds there.
            options[_RENAMED.get(name, name)] = value / 1000 if name == "retry_interval" else value
    if transport == "stdio" and options:
        raise TypeError(f"run(transport='stdio') takes no {', '.join(sorted(options))}: they are of HTTP")
    return options


def _security(settings: Any) -> dict[str, Any]:
    """The official SDK's ``TransportSecuritySettings``, or a dictionary of their members."""
    if settings is None:
        return {}
    members = settings if isinstance(settings, Mapping) else settings.model_dump()
    if not members.get("enable_dns_rebinding_protection", True):
        return {"allowed_hosts": ("*",), "allowed_origins": ("*",)}
    # `name:*` allows any port there; here a name without a port does.
    return {
        name: tuple(entry.removesuffix(":*") for entry in members.get(name, ()))
        for name in ("allowed_hosts", "allowed_origins")
    }


def run(server: MCPServer[Any], transport: str, given: Mapping[str, Any]) -> None:
    """Serves until it is told to stop."""
    from mcpace.server.running import run as serve

    if transport not in ("stdio", "sse", "streamable-http", "http"):
        raise ValueError(f"Unknown transport: {transport}")
    serve(server, transport=transport, **options_of(transport, given))


async def run_async(server: MCPServer[Any], transport: str, given: Mapping[str, Any]) -> None:
    """Serves within a running event loop, until the caller's task is cancelled."""
    from mcpace.server.running import run_async as serve

    await serve(server, transport=transport, **options_of(transport, given))


def asgi(server: MCPServer[Any], transport: str, given: Mapping[str, Any]) -> Any:
    """An ASGI application."""
    from mcpace.server.running import asgi as application

    return application(server, transport=transport, **options_of(transport, given))
