"""Whether the runtime may call a server's tools itself. It may not if anything intercepts tool calls.

Design constraint: an allow list. Middleware, subclasses, handlers and extensions that are not known to leave tool calls
alone make all tools ineligible; the SDK's own handlers then answer, as the author intended.
"""

from __future__ import annotations

import sys
from typing import Any

from mcpace.server.adopt.server_kinds import Kind
from mcpace.server.registration.context_use_scan import CHANGES, find_names

_HARMLESS_2 = frozenset({"RequestStateBoundary", "OpenTelemetryMiddleware", "FastMCPServerMiddleware"})
"""Middleware that the SDKs install in every server. Except for traces, it does not change calls without rounds."""


def ineligibility(server: Any, kind: Kind, low: Any) -> str | None:
    """The reason why no tool may be adopted; ``None`` if tools may be adopted."""
    match kind:
        case Kind.MCPSERVER:
            return _mcpserver(server, low)
        case Kind.FASTMCP_1:
            return _fastmcp_1(server, low)
        case Kind.FASTMCP:
            return _fastmcp(server, low)
        case Kind.LOWLEVEL:
            return "a low-level server's handlers are its own"


def _mcpserver(server: Any, low: Any) -> str | None:
    entry = low.get_request_handler("tools/call")
    if entry is None or getattr(entry.handler, "__func__", None) is not _own_class(server)._handle_call_tool:
        return "another handler answers its calls"
    return _middleware_2(low) or _overridden_methods(server, "call_tool", "_handle_call_tool") or _manager(server)


def _fastmcp_1(server: Any, low: Any) -> str | None:
    request = sys.modules["mcp.types"].CallToolRequest
    handler = low.request_handlers.get(request)
    cells = [cell.cell_contents for cell in getattr(handler, "__closure__", None) or ()]
    if not any(getattr(value, "__func__", None) is _own_class(server).call_tool for value in cells):
        return "another handler answers its calls"
    return _overridden_methods(server, "call_tool", "get_context") or _manager(server)


def _fastmcp(server: Any, low: Any) -> str | None:
    own: Any = _own_class(server)
    names = ("call_tool", "get_tool", "_get_tool", "_run_middleware", "_dispatch_component_middleware")
    hooks = ("__call__", "_dispatch_handler", "on_message", "on_request", "on_call_tool")
    base = sys.modules["fastmcp.server.middleware.middleware"].Middleware
    for one in server.middleware:
        if hasattr(one, "injected_tools"):
            return "its middleware brings tools"
        touched = [hook for hook in hooks if getattr(type(one), hook, None) is not getattr(base, hook, None)]
        if touched:
            return f"its middleware {type(one).__name__} sees calls"
    if server._transforms or server._local_provider._transforms:
        return "its tools are transformed"
    for part in server._local_provider._components.values():
        if find_names(getattr(part, "fn", None), CHANGES) is not None:
            return f"{part.name} changes what a session sees"
    if getattr(server, "_extensions", None):
        return "an extension may see calls"
    if server.strict_input_validation:
        return "its arguments are validated strictly"
    if server.providers[0] is not server._local_provider:
        return "another provider comes before its own tools"
    if hasattr(low, "middleware") and (why := _middleware_2(low)) is not None:
        return why
    return _is_traced() or _overridden_methods(server, *(name for name in names if hasattr(own, name)))


def _middleware_2(low: Any) -> str | None:
    for one in low.middleware:
        if type(one).__name__ not in _HARMLESS_2 or not type(one).__module__.startswith(("mcp.", "fastmcp.")):
            name = getattr(one, "__name__", type(one).__name__)
            return f"its middleware {name} sees every message"
    return _is_traced()


def _is_traced() -> str | None:
    """Whether calls are traced. The SDK creates its spans around its own handlers only."""
    trace = sys.modules.get("opentelemetry.trace")
    provider = None if trace is None else getattr(trace, "_TRACER_PROVIDER", None)
    return None if provider is None else "OpenTelemetry is set up, and the SDK makes the spans"


def _manager(server: Any) -> str | None:
    manager = type(server._tool_manager)
    if manager.__module__.startswith("mcp.server."):
        return None
    return f"its tool manager is a {manager.__name__} of its own"


def _overridden_methods(server: Any, *names: str) -> str | None:
    own = _own_class(server)
    for name in names:
        bound = getattr(server, name)
        if getattr(bound, "__func__", bound) is not getattr(own, name):
            return f"it has a {name} of its own"
    return None


def _own_class(server: Any) -> Any:
    """The nearest class of the SDK among the classes of a server."""
    return next(base for base in type(server).__mro__ if base.__module__.startswith(("mcp.server.", "fastmcp.server.")))
