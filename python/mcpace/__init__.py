"""mcpace: finds where the time of an MCP call goes and why, and serves MCP at little more than the protocol's own cost.

The names that server authors use; each name is loaded when it is first used, so that the command and a small
server start quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mcpace.client import Client, StdioServerParameters, SyncClient
    from mcpace.server.app import MCPServer
    from mcpace.server.auth.bearer_tokens import AccessToken, AuthSettings, TokenVerifier
    from mcpace.server.auth.guards import AccessRequest, Denied, RateLimit, requires
    from mcpace.server.auth.principal import get_access_token
    from mcpace.server.auth.tokens import (
        AllowAny,
        IntrospectionTokenVerifier,
        JWTVerifier,
        StaticTokenVerifier,
        TokensUnavailable,
    )
    from mcpace.server.calls.context import Context, RequestContext, ServerRequestContext
    from mcpace.server.calls.elicitation import (
        AcceptedElicitation,
        AcceptedUrlElicitation,
        CancelledElicitation,
        DeclinedElicitation,
        ElicitationResult,
        UrlElicitationResult,
    )
    from mcpace.server.calls.media import Audio, Image
    from mcpace.server.calls.session import ServerSession
    from mcpace.server.core.subscriptions import InMemorySubscriptionBus, SubscriptionBus
    from mcpace.server.core.wire_settings import CacheHint, RequestStateSecurity
    from mcpace.server.errors import (
        InvalidSignature,
        MCPError,
        McpError,
        RegistrationError,
        ResourceError,
        ResourceNotFoundError,
        ServerError,
        ToolError,
        UnexpectedResourceError,
        UnexpectedToolError,
        UnsupportedOption,
        UrlElicitationRequiredError,
    )
    from mcpace.server.registration.extension import Extension, ResourceBinding, ToolBinding, require_client_extension
    from mcpace.server.registration.injection import Elicit, ListRoots, Resolve, Sample
    from mcpace.server.registration.path_security import DEFAULT_RESOURCE_SECURITY, ResourceSecurity, safe_join
    from mcpace.server.registration.prompts import AssistantMessage, Message, Prompt, UserMessage
    from mcpace.server.registration.resources import (
        BinaryResource,
        DirectoryResource,
        FileResource,
        FunctionResource,
        HttpResource,
        Resource,
        TextResource,
    )
    from mcpace.server.registration.tasks import TaskConfig
    from mcpace.server.registration.tools import Tool
    from mcpace.server.registration.uri_template import InvalidUriTemplate, UriTemplate
    from mcpace.server.sdk_compat.transport_security import TransportSecuritySettings
    from mcpace.types import Icon

_WHERE = {
    "app": ("MCPServer",),
    "auth.bearer_tokens": ("AccessToken", "AuthSettings", "TokenVerifier"),
    "calls.context": ("Context", "RequestContext", "ServerRequestContext"),
    "calls.elicitation": (
        "AcceptedElicitation",
        "AcceptedUrlElicitation",
        "CancelledElicitation",
        "DeclinedElicitation",
        "ElicitationResult",
        "UrlElicitationResult",
    ),
    "errors": (
        "InvalidSignature",
        "MCPError",
        "McpError",
        "RegistrationError",
        "ResourceError",
        "ResourceNotFoundError",
        "ServerError",
        "ToolError",
        "UnexpectedResourceError",
        "UnexpectedToolError",
        "UnsupportedOption",
        "UrlElicitationRequiredError",
    ),
    "registration.extension": ("Extension", "ResourceBinding", "ToolBinding", "require_client_extension"),
    "auth.guards": ("AccessRequest", "Denied", "RateLimit", "requires"),
    "core.wire_settings": ("CacheHint", "RequestStateSecurity"),
    "registration.injection": ("Elicit", "ListRoots", "Resolve", "Sample"),
    "calls.media": ("Audio", "Image"),
    "auth.principal": ("get_access_token",),
    "registration.prompts": ("AssistantMessage", "Message", "Prompt", "UserMessage"),
    "registration.resources": (
        "BinaryResource",
        "DirectoryResource",
        "FileResource",
        "FunctionResource",
        "HttpResource",
        "Resource",
        "TextResource",
    ),
    "registration.path_security": ("DEFAULT_RESOURCE_SECURITY", "ResourceSecurity", "safe_join"),
    "calls.session": ("ServerSession",),
    "core.subscriptions": ("InMemorySubscriptionBus", "SubscriptionBus"),
    "registration.tasks": ("TaskConfig",),
    "auth.tokens": (
        "AllowAny",
        "IntrospectionTokenVerifier",
        "JWTVerifier",
        "StaticTokenVerifier",
        "TokensUnavailable",
    ),
    "registration.tools": ("Tool",),
    "sdk_compat.transport_security": ("TransportSecuritySettings",),
    "registration.uri_template": ("InvalidUriTemplate", "UriTemplate"),
}
_MODULES = {name: f"mcpace.server.{module}" for module, names in _WHERE.items() for name in names} | {
    "Icon": "mcpace.types",
    "Client": "mcpace.client",
    "StdioServerParameters": "mcpace.client",
    "SyncClient": "mcpace.client",
}

__all__ = [
    "DEFAULT_RESOURCE_SECURITY",
    "AcceptedElicitation",
    "AcceptedUrlElicitation",
    "AccessRequest",
    "AccessToken",
    "AllowAny",
    "AssistantMessage",
    "Audio",
    "AuthSettings",
    "BinaryResource",
    "CacheHint",
    "CancelledElicitation",
    "Client",
    "Context",
    "DeclinedElicitation",
    "Denied",
    "DirectoryResource",
    "Elicit",
    "ElicitationResult",
    "Extension",
    "FileResource",
    "FunctionResource",
    "HttpResource",
    "Icon",
    "Image",
    "InMemorySubscriptionBus",
    "IntrospectionTokenVerifier",
    "InvalidSignature",
    "InvalidUriTemplate",
    "JWTVerifier",
    "ListRoots",
    "MCPError",
    "MCPServer",
    "McpError",
    "Message",
    "Prompt",
    "RateLimit",
    "RegistrationError",
    "RequestContext",
    "RequestStateSecurity",
    "Resolve",
    "Resource",
    "ResourceBinding",
    "ResourceError",
    "ResourceNotFoundError",
    "ResourceSecurity",
    "Sample",
    "ServerError",
    "ServerRequestContext",
    "ServerSession",
    "StaticTokenVerifier",
    "StdioServerParameters",
    "SubscriptionBus",
    "SyncClient",
    "TaskConfig",
    "TextResource",
    "TokenVerifier",
    "TokensUnavailable",
    "Tool",
    "ToolBinding",
    "ToolError",
    "TransportSecuritySettings",
    "UnexpectedResourceError",
    "UnexpectedToolError",
    "UnsupportedOption",
    "UriTemplate",
    "UrlElicitationRequiredError",
    "UrlElicitationResult",
    "UserMessage",
    "__version__",
    "get_access_token",
    "require_client_extension",
    "requires",
    "safe_join",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'mcpace' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
