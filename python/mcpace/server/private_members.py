"""Replacements for the private members of the official SDK's server classes that programs reach for."""

from __future__ import annotations

from typing import Any

_INSTEAD = {
    "_tool_manager": "add_tool(), remove_tool() and await list_tools()",
    "_resource_manager": "add_resource(), resource(), remove_resource() and await list_resources()",
    "_prompt_manager": "add_prompt(), remove_prompt() and await list_prompts()",
    "_lowlevel_server": "middleware, extensions and the methods of MCPServer",
    "_custom_starlette_routes": "custom_route()",
    "_session_manager": "session_manager",
    "create_initialization_options": "mcpace.Client(server), or the official SDK's Client(server)",
}


def replacement(server: Any, name: str) -> Any:
    """A member that ``server`` does not have. Raises ``AttributeError``, with what to use where that is known."""
    if name == "_mcp_server":
        from mcpace.server.sdk_transport import LowLevel

        return LowLevel(server)
    instead = _INSTEAD.get(name)
    known = f", which is the official SDK's own; use {instead}. mcpace serve takes the SDK's server unchanged"
    raise AttributeError(f"{type(server).__name__!r} object has no attribute {name!r}{known if instead else ''}")
