"""Serves an ``MCPServer`` by the official SDK's keywords: run over a transport, or as an ASGI application.

Design constraint: loaded when a server is run. An option that the runtime doesn't have is refused by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from mcpace.server.errors import UnsupportedOption, logger
from mcpace.server.settings import Settings

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from mcpace.server.app import MCPServer
    from mcpace.server.running.application import Application


# Keywords of the official SDK with another name in the runner's settings.
_RENAMED = {
    "streamable_http_path": "path",
    "stateless_http": "stateless",
    "max_request_body_size": "max_body",
    "session_idle_timeout": "session_idle_s",
    "retry_interval": "retry_s",
}
# Keywords whose `None` means the default.
_LIMITS = {"max_request_body_size", "session_idle_timeout", "max_sessions", "retry_interval"}
# Keywords of the official SDK's transports and of the constructor of mcp 1.x.
_HTTP = (
    "host",
    "port",
    "streamable_http_path",
    "json_response",
    "stateless_http",
    "max_request_body_size",
    "retry_interval",
    "event_store",
    "transport_security",
)
_SSE = ("host", "port", "mount_path", "sse_path", "message_path", "max_request_body_size", "transport_security")
_DEFAULTS = {field.name: field.default for field in fields(Settings)}
_PATHS = ("mount_path", "sse_path", "message_path")


def options_of(transport: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The runner's settings by name. Raises ``UnsupportedOption`` or ``TypeError`` for an unknown option."""
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name in _PATHS:
            if value != _DEFAULTS[name] and transport == "sse":
                raise UnsupportedOption(
                    f"{name}={value!r}: a server that listens itself has its streams at /sse and its messages at "
                    "/messages; leave it out, or run sse_app() on an ASGI server, which has the paths that it is given"
                )
        elif name == "event_store":
            if value is not None:
                logger.warning(
                    "event_store is not used: the runtime keeps the events of streams itself, so that clients resume "
                    "them; give store='redis://…' where several processes share them"
                )
        elif name == "transport_security":
            options |= _security_options(value)
        elif value is not None or name not in _LIMITS:
            # retry_interval is in milliseconds, retry_s in seconds.
            options[_RENAMED.get(name, name)] = value / 1000 if name == "retry_interval" else value
    if transport == "stdio" and options:
        raise TypeError(f"run(transport='stdio') takes no {', '.join(sorted(options))}: they are of HTTP")
    return options


def keywords_of(server: MCPServer[Any], transport: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The official SDK's keywords for a transport: the given ones, completed by those of the constructor."""
    names = {"stdio": (), "sse": _SSE}.get(transport, _HTTP)
    settings = {name: getattr(server.settings, name) for name in names}
    return {name: value for name, value in settings.items() if value != _DEFAULTS[name]} | dict(given)


def own_settings(server: MCPServer[Any]) -> dict[str, Any]:
    """The runner's settings that the constructor received, for runs that don't go through ``MCPServer.run()``."""
    given = keywords_of(server, "streamable-http", {})
    return options_of("streamable-http", {name: value for name, value in given.items() if name != "event_store"})


def _security_options(settings: Any) -> dict[str, Any]:
    """The official SDK's ``TransportSecuritySettings``, or a dictionary of their members."""
    if settings is None:
        return {}
    members = settings if isinstance(settings, Mapping) else settings.model_dump()
    if not members.get("enable_dns_rebinding_protection", True):
        return {"allowed_hosts": ("*",), "allowed_origins": ("*",)}
    # The SDK's `name:*` allows any port; in the runtime a name without a port does.
    return {
        name: tuple(entry.removesuffix(":*") for entry in members.get(name, ()))
        for name in ("allowed_hosts", "allowed_origins")
    }


def run(server: MCPServer[Any], transport: str, given: Mapping[str, Any]) -> None:
    """Serves until a signal comes, or stdin ends."""
    from mcpace.server.running import run as serve

    if transport not in ("stdio", "sse", "streamable-http", "http"):
        raise ValueError(f"Unknown transport: {transport}")
    serve(server, transport=transport, **options_of(transport, keywords_of(server, transport, given)))


async def run_async(server: MCPServer[Any], transport: str, given: Mapping[str, Any]) -> None:
    """Serves within a running event loop, until the caller's task is cancelled."""
    from mcpace.server.running import run_async as serve

    await serve(server, transport=transport, **options_of(transport, keywords_of(server, transport, given)))


def asgi(server: MCPServer[Any], given: Mapping[str, Any]) -> Application:
    """An ASGI application."""
    from mcpace.server.running import asgi as application

    return application(server, **options_of("streamable-http", keywords_of(server, "streamable-http", given)))


def streamable_http_app(server: MCPServer[Any], given: Mapping[str, Any]) -> tuple[Application, Starlette]:
    """A Starlette application of the Streamable HTTP transport, and the endpoint within it."""
    with _needing_starlette("streamable_http_app()"):
        from mcpace.server.running import starlette_application
    endpoint, _ = _mounted_endpoint(server, "streamable-http", given)
    settings = server.settings
    return endpoint, starlette_application.streamable_http(
        endpoint, endpoint.path, server._routes, has_auth=settings.auth is not None, debug=settings.debug
    )


def sse_app(server: MCPServer[Any], given: Mapping[str, Any]) -> tuple[Application, Starlette]:
    """A Starlette application of the HTTP+SSE transport, and the endpoint within it."""
    with _needing_starlette("sse_app()"):
        from mcpace.server.running import starlette_application
    endpoint, keywords = _mounted_endpoint(server, "sse", given)
    settings = server.settings
    sse_path, message_path, mount_path = (
        keywords.get(name, getattr(settings, name)) for name in ("sse_path", "message_path", "mount_path")
    )
    return endpoint, starlette_application.sse(
        endpoint,
        sse_path,
        message_path,
        mount_path,
        server._routes,
        has_auth=settings.auth is not None,
        debug=settings.debug,
    )


def _mounted_endpoint(
    server: MCPServer[Any], transport: str, given: Mapping[str, Any]
) -> tuple[Application, dict[str, Any]]:
    """The endpoint of a Starlette application, which has its own host policy, and all its keywords."""
    from mcpace.server.running import asgi as application
    from mcpace.server.running.host_policy import policy_of

    keywords = keywords_of(server, transport, given)
    own = {name: value for name, value in keywords.items() if name not in (*_PATHS, "transport_security")}
    policy = policy_of(keywords.get("transport_security"), keywords.get("host", server.settings.host))
    everything = {"allowed_hosts": ("*",), "allowed_origins": ("*",)}
    return application(server, transport=transport, policy=policy, **everything | options_of(transport, own)), keywords


@contextmanager
def _needing_starlette(name: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise UnsupportedOption(
            f"{name} needs {error.name}, which is not installed: pip install 'mcpace[routes]'. server.asgi() is "
            "an ASGI application that needs no package"
        ) from error
