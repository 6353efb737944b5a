"""Replacements for the private members of the official SDK's server classes that programs reach for."""

from __future__ import annotations

_INSTEAD = {
    "_tool_manager": "add_tool(), remove_tool() and await list_tools()",
    "_resource_manager": "add_resource(), resource(), remove_resource() and await list_resources()",
    "_prompt_manager": "add_prompt(), remove_prompt() and await list_prompts()",
    "_lowlevel_server": "middleware, extensions and the methods of MCPServer",
    "_custom_starlette_routes": "custom_route()",
    "_session_manager": "session_manager",
    "create_initialization_options": "mcpace.Client(server), or the official SDK's Client(server)",
}


def missing_member(server: object, name: str) -> AttributeError:
    """The error for a member that ``server`` does not have. It names the public replacement where there is one."""
    instead = _INSTEAD.get(name)
    known = f", which is the official SDK's own; use {instead}. mcpace serve takes the SDK's server unchanged"
    return AttributeError(f"{type(server).__name__!r} object has no attribute {name!r}{known if instead else ''}")
