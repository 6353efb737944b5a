"""The settings that an adopted server object has, under the runner's names.

mcp 1.x keeps them on the object: its constructor and ``FASTMCP_…`` variables set them. FastMCP keeps them in
``fastmcp.settings``, which the program and the same variables set. mcp 2.x takes settings when a server is run, so its
objects have none. A setting that is the SDK's default counts as not set.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

from mcpace.server.adopt.server_kinds import Kind

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_HTTP = ("host", "port", "streamable_http_path", "json_response", "stateless_http")
_LIMITS = ("max_request_body_size", "session_idle_timeout", "max_sessions")
_HOSTS = ("http_allowed_hosts", "http_allowed_origins")
_UNUSED = {
    "sse_path": "the transport sse has its streams at /sse",
    "message_path": "the transport sse has its messages at /messages",
    "mount_path": "a server that listens itself is mounted nowhere",
}


def settings_of(server: Any, kind: Kind) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The runner's settings by name, and messages about settings that it does not have."""
    match kind:
        case Kind.FASTMCP_1:
            usual = inspect.signature(_sdk_class(server).__init__).parameters
            defaults = {name: usual[name].default for name in (*_HTTP, *_LIMITS, *_UNUSED) if name in usual}
            changed = _changed_settings(server.settings, defaults)
            unused = [f"its {name} is not used: {reason}" for name, reason in _UNUSED.items() if name in changed]
            if server._event_store is not None:
                unused.append("its event_store is not used: the runtime keeps the events of streams itself")
            if getattr(server, "_retry_interval", None) is not None:
                changed["retry_interval"] = server._retry_interval
            used = {name: value for name, value in changed.items() if name not in _UNUSED}
            return _runner_names(used) | _security(server.settings.transport_security), tuple(unused)
        case Kind.FASTMCP:
            settings = sys.modules["fastmcp"].settings
            fields = type(settings).model_fields
            changed = _changed_settings(
                settings, {name: fields[name].default for name in (*_HTTP, *_HOSTS) if name in fields}
            )
            hosts = {name.removeprefix("http_"): tuple(changed.pop(name)) for name in _HOSTS if name in changed}
            return _runner_names(changed) | hosts, ()
        case Kind.MCPSERVER | Kind.LOWLEVEL:
            return {}, ()


def _sdk_class(server: Any) -> Any:
    return next(base for base in type(server).__mro__ if base.__module__.startswith("mcp.server."))


def _changed_settings(settings: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that differ from their default and from ``None``."""
    values = {name: getattr(settings, name, None) for name in defaults}
    return {name: value for name, value in values.items() if value is not None and value != defaults[name]}


def _runner_names(settings: dict[str, Any]) -> dict[str, Any]:
    from mcpace.server.running.transports import options_of

    return options_of("streamable-http", settings)


def _security(settings: Any) -> dict[str, Any]:
    """The hosts and origins that the SDK accepts, without loopback's, which the runtime always accepts."""
    from mcpace.server.running.transports import options_of

    found = options_of("streamable-http", {"transport_security": settings})
    kept = {name: tuple(one for one in value if not _is_loopback(one)) for name, value in found.items()}
    return {name: value for name, value in kept.items() if value}


def _is_loopback(name: str) -> bool:
    return name.rpartition("://")[2] in _LOOPBACK
