"""Calls of a Django server's tools within the process: in the caller's thread, transaction and connection.

A spec's tool is called on behalf of a user or a principal; a plain function's tool on behalf of a principal only.

Design constraint: a call within the process passes every check that a client's call passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcpace.django.auth import Principal
from mcpace.django.request import Call
from mcpace.django.tool import SpecTool
from mcpace.server.core.local_calls import admit_sync
from mcpace.server.errors import ToolError
from mcpace.types import CallToolResult, InputRequiredResult

if TYPE_CHECKING:
    from mcpace.django.app import MCPServer

Result = CallToolResult | InputRequiredResult


def call_in_process(
    server: MCPServer, name: str, arguments: Mapping[str, Any] | None, *, user: Any, principal: Any, request: Any
) -> Result:
    """Calls a tool in this thread. Raises ``ToolError`` where the call fails."""
    tool: Any = _find_tool(server, name)
    if not isinstance(tool, SpecTool):
        check_plain(name, user, request)
        return raise_for_error(server.call_tool_sync(name, arguments, principal=principal))
    user = _single_user(user, principal, request)
    call = Call(name, dict(arguments or {}), site=server._site, limits=tool.limits, user=user, request=request)
    call.principal = principal
    guards = server.__mcpace_core__.guards_of(tool)
    admit_sync(server.__mcpace_core__, "tool", name, _principal_of(user) if principal is None else principal, guards)
    return tool.result(call, guards)


def _single_user(user: Any, principal: Any, request: Any) -> Any:
    """The user of a call; ``None`` where none is named. Raises ``TypeError`` where two are named, because the
    permissions of one would be checked while the other acts."""
    named = [getattr(principal, "user", None), user, getattr(request, "user", None)]
    found = [one for one in named if one is not None]
    if any(one != found[0] for one in found):
        raise TypeError(
            "the call is on behalf of two: user=, the principal's user and request.user have to be the same"
        )
    return found[0] if found else None


def _principal_of(user: Any) -> Principal | None:
    """The principal of a user for permissions and rate limits, without scopes; ``None`` for an anonymous user."""
    if not getattr(user, "is_authenticated", False):
        return None
    principal = Principal(user=user)
    return principal if principal.subject else None


def is_asynchronous(server: MCPServer, name: str) -> bool:
    """Whether the tool is a plain function's and needs an event loop."""
    tool: Any = _find_tool(server, name)
    return not isinstance(tool, SpecTool) and bool(tool.is_async or tool.resolved)


def check_plain(name: str, user: Any, request: Any) -> None:
    """Raises ``TypeError`` where the caller of a plain function is named by a user or a request."""
    if user is not None or request is not None:
        raise TypeError(f"{name} is a plain function's, whose caller is a principal: principal=Principal(user=…)")


def raise_for_error(result: Result) -> Result:
    """Returns a successful result. Raises ``ToolError`` for a failure."""
    if isinstance(result, CallToolResult) and result.is_error:
        raise ToolError("\n".join(getattr(block, "text", "") for block in result.content))
    return result


def _find_tool(server: MCPServer, name: str) -> Any:
    tool: Any = server.registry.tools.get(name)
    if tool is None:
        raise ToolError(f"Unknown tool: {name}")
    return tool
