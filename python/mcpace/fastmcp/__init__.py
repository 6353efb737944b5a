"""FastMCP's names, keywords and behaviours on the runtime: ``from mcpace.fastmcp import FastMCP``.

This package is for new servers in FastMCP's style. An existing FastMCP server is adopted unchanged
(:mod:`mcpace.server.adopt`).

Design constraint: the package is an interface to :class:`mcpace.MCPServer`, which does the work. A feature of FastMCP
that is missing here raises an error and is never ignored. The client is imported when its name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpace.fastmcp.app import FastMCP
from mcpace.fastmcp.authorization import (
    AuthContext,
    AuthorizationError,
    require_roles,
    require_scopes,
    restrict_tag,
)
from mcpace.fastmcp.content import File
from mcpace.fastmcp.context import Context, SamplingResult, get_context
from mcpace.fastmcp.decorators import prompt, resource, tool
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
from mcpace.fastmcp.errors import DisabledError, FastMCPError, NotFoundError, PromptError, ValidationError
from mcpace.fastmcp.middleware import CallNext, Middleware, MiddlewareContext
from mcpace.fastmcp.prompts import FunctionPrompt, Message, PromptResult
from mcpace.fastmcp.prompts import FunctionPrompt as Prompt
from mcpace.fastmcp.refused import MultiAuth, PromptsAsTools, ResourcesAsTools
from mcpace.fastmcp.resources import (
    BinaryResource,
    DirectoryResource,
    FileResource,
    FunctionResource,
    HttpResource,
    Resource,
    ResourceContent,
    ResourceResult,
    TextResource,
)
from mcpace.fastmcp.resources import FunctionTemplate as ResourceTemplate
from mcpace.fastmcp.tools import FunctionTool, ToolResult
from mcpace.fastmcp.tools import FunctionTool as Tool
from mcpace.server.calls.elicitation import AcceptedElicitation, CancelledElicitation, DeclinedElicitation
from mcpace.server.calls.media import Audio, Image
from mcpace.server.errors import MCPError, ResourceError, ToolError
from mcpace.server.errors import MCPError as McpError
from mcpace.server.registration.path_security import ResourceSecurity

if TYPE_CHECKING:
    from mcpace.fastmcp.client import Client
    from mcpace.server.auth.bearer_tokens import AccessToken

__all__ = [
    "AcceptedElicitation",
    "AccessToken",
    "Audio",
    "AuthContext",
    "AuthorizationError",
    "BinaryResource",
    "CallArgument",
    "CallNext",
    "CancelledElicitation",
    "Client",
    "Context",
    "CurrentAccessToken",
    "CurrentContext",
    "CurrentFastMCP",
    "CurrentHeaders",
    "CurrentRequest",
    "DeclinedElicitation",
    "Dependency",
    "Depends",
    "DirectoryResource",
    "DisabledError",
    "FastMCP",
    "FastMCPError",
    "File",
    "FileResource",
    "FunctionPrompt",
    "FunctionResource",
    "FunctionTool",
    "HttpResource",
    "Image",
    "MCPError",
    "McpError",
    "Message",
    "Middleware",
    "MiddlewareContext",
    "MultiAuth",
    "NotFoundError",
    "Progress",
    "Prompt",
    "PromptError",
    "PromptResult",
    "PromptsAsTools",
    "Resource",
    "ResourceContent",
    "ResourceError",
    "ResourceResult",
    "ResourceSecurity",
    "ResourceTemplate",
    "ResourcesAsTools",
    "SamplingResult",
    "TextResource",
    "TokenClaim",
    "Tool",
    "ToolError",
    "ToolResult",
    "ValidationError",
    "get_access_token",
    "get_context",
    "get_http_headers",
    "get_http_request",
    "get_server",
    "prompt",
    "require_roles",
    "require_scopes",
    "resource",
    "restrict_tag",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name == "Client":
        from mcpace.fastmcp.client import Client

        return Client
    if name == "AccessToken":
        from mcpace.server.auth.bearer_tokens import AccessToken

        return AccessToken
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
