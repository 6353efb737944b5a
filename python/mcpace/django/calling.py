"""Calls of a Django server within the process: in the caller's thread, transaction and connection.

A tool of a spec is called on behalf of a user or a principal; a plain function's, as the runtime's own, of a principal.

Design constraint: what a client's call would meet is met, and nobody is trusted for being near.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcpace.django.auth import Principal
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
    user = _caller(user, principal, request)
    call = Call(name, dict(arguments or {}), site=server._site, limits=tool.limits, user=user, request=request)
    call.principal = principal
    guards = server._inside.guards_of(tool)
    admitted_here(server, "tool", name, _counted(user) if principal is None else principal, guards)
    return tool.result(call, guards)


def _caller(user: Any, principal: Any, request: Any) -> Any:
    """The one user whom a call is for; ``None`` where nobody is named. Raises ``TypeError`` where two are: one would be
    permitted, and the other would act."""
    named = [getattr(principal, "user", None), user, getattr(request, "user", None)]
    found = [one for one in named if one is not None]
    if any(one != found[0] for one in found):
        raise TypeError(
            "the call is on behalf of two: user=, the principal's user and request.user have to be the same"
        )
    return found[0] if found else None


def _counted(user: Any) -> Principal | None:
    """As whom a user is known to permissions and rate limits, with no scope; nobody is ``None``."""
    if not getattr(user, "is_authenticated", False):
        return None
    principal = Principal(user=user)
    return principal if principal.subject else None


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
