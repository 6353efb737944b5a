"""Calls of a Django server within the process: in the caller's thread, transaction and connection.

A tool of a spec is called on behalf of a user or a principal; a plain function's, as the runtime's own, of a principal.

Design constraint: what a client's call would meet is met, and nobody is trusted for being near.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcpace.django.request import Call
from mcpace.django.tool import SpecTool
from mcpace.server.errors import ToolError
from mcpace.server.inprocess import admitted_here
from mcpace.types import CallToolResult, InputRequiredResult

if TYPE_CHECKING:
    from mcpace.django.app import MCPServer

Result = CallToolResult | InputRequiredResult


def called(
    server: MCPServer, name: str, arguments: Mapping[str, Any] | None, *, user: Any, principal: Any, request: Any
) -> Result:
    """The result, in this thread. Raises ``ToolError`` where the call fails."""
    tool: Any = _tool(server, name)
    if not isinstance(tool, SpecTool):
        check_plain(name, user, request)
        return succeeded(server.call_tool_sync(name, arguments, principal=principal))
    call = Call(name, dict(arguments or {}), site=server._site, limits=tool.limits, user=user, request=request)
    call.principal = principal
    guards = server._inside.guards_of(tool)
    admitted_here(server, "tool", name, principal, guards)
    return tool.result(call, guards)


def is_asynchronous(server: MCPServer, name: str) -> bool:
    """Whether a plain function needs an event loop."""
    tool: Any = _tool(server, name)
    return not isinstance(tool, SpecTool) and bool(tool.is_async or tool.resolved)


def check_plain(name: str, user: Any, request: Any) -> None:
    """Raises ``TypeError`` where a plain function's caller is named otherwise than by a principal."""
    if user is not None or request is not None:
        raise TypeError(f"{name} is a plain function's, whose caller is a principal: principal=Principal(user=…)")


def succeeded(result: Result) -> Result:
    """A result. Raises ``ToolError`` where it is a failure."""
    if isinstance(result, CallToolResult) and result.is_error:
        raise ToolError("\n".join(getattr(block, "text", "") for block in result.content))
    return result


def _tool(server: MCPServer, name: str) -> Any:
    tool: Any = server.registry.tools.get(name)
    if tool is None:
        raise ToolError(f"Unknown tool: {name}")
    return tool
