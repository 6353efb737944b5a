"""FastMCP's names, keywords and behaviours on the runtime: ``from mcpace.fastmcp import FastMCP``.

For servers that are to be written so. A server that *is* FastMCP's is adopted as it is (:mod:`mcpace.server.adopt`).

Design constraint: a face on :class:`mcpace.MCPServer`, whose machinery does the work. What FastMCP has and this has not
raises an error that says so, never silence.
"""

from __future__ import annotations

from mcpace.fastmcp.app import FastMCP
from mcpace.fastmcp.authorization import (
    AuthContext,
    AuthorizationError,
    require_roles,
    require_scopes,
    restrict_tag,
)
from mcpace.fastmcp.context import Context, get_context
from mcpace.fastmcp.dependencies import (
    CallArgument,
    CurrentAccessToken,
    CurrentContext,
    CurrentFastMCP,
    CurrentHeaders,
    CurrentRequest,
    Dependency,
    Depends,
    Progress,
    TokenClaim,
    get_access_token,
    get_http_headers,
    get_http_request,
    get_server,
)
from mcpace.fastmcp.middleware import Middleware, MiddlewareContext
from mcpace.fastmcp.tools import FunctionTool, ToolResult
from mcpace.server.errors import ResourceError, ToolError
from mcpace.server.media import Audio, Image
from mcpace.server.prompts import Message

__all__ = [
    "Audio",
    "AuthContext",
    "AuthorizationError",
    "CallArgument",
    "Context",
    "CurrentAccessToken",
    "CurrentContext",
    "CurrentFastMCP",
    "CurrentHeaders",
    "CurrentRequest",
    "Dependency",
    "Depends",
    "FastMCP",
    "FunctionTool",
    "Image",
    "Message",
    "Middleware",
    "MiddlewareContext",
    "Progress",
    "ResourceError",
    "TokenClaim",
    "ToolError",
    "ToolResult",
    "get_access_token",
    "get_context",
    "get_http_headers",
    "get_http_request",
    "get_server",
    "require_roles",
    "require_scopes",
    "restrict_tag",
]
