"""The names of the official SDK (mcp 1.x, 2.x) and FastMCP (3, 4) that mcpace has, and advice on those it has not.

Data alone. tests/python/test_migrate.py checks that each name on the left exists in a release of its SDK, and each
name on the right in mcpace.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """Names that are imported from any of some modules, and the module of mcpace that has them."""

    modules: str
    names: str
    """Separated by spaces; `Old=New` where mcpace's name is another."""
    target: str


ROWS = (
    Row("mcp.server.fastmcp mcp.server.fastmcp.server mcp.server", "FastMCP=MCPServer", "mcpace"),
    Row("mcp.server mcp.server.mcpserver mcp.server.mcpserver.server", "MCPServer", "mcpace"),
    Row("mcp.server.fastmcp", "Context Image Audio Icon", "mcpace"),
    Row("mcp.server.fastmcp.server mcp.server.mcpserver.context", "Context", "mcpace"),
    Row("mcp.server.fastmcp.utilities.types mcp.server.mcpserver.utilities.types", "Image Audio", "mcpace"),
    Row(
        "mcp.server.fastmcp.exceptions mcp.server.mcpserver.exceptions",
        "ToolError ResourceError InvalidSignature",
        "mcpace",
    ),
    Row(
        "mcp.server.mcpserver.exceptions", "ResourceNotFoundError UnexpectedResourceError UnexpectedToolError", "mcpace"
    ),
    Row("mcp.server.fastmcp.prompts mcp.server.mcpserver.prompts", "Prompt", "mcpace"),
    Row(
        "mcp.server.fastmcp.prompts.base mcp.server.mcpserver.prompts.base",
        "Prompt Message UserMessage AssistantMessage",
        "mcpace",
    ),
    Row(
        "mcp.server.fastmcp.resources mcp.server.mcpserver.resources",
        "Resource TextResource BinaryResource FunctionResource FileResource DirectoryResource HttpResource",
        "mcpace",
    ),
    Row("mcp.server.mcpserver.resources", "DEFAULT_RESOURCE_SECURITY ResourceSecurity", "mcpace"),
    Row("mcp.server.fastmcp.tools mcp.server.mcpserver.tools", "Tool", "mcpace"),
    Row(
        "mcp.server.mcpserver",
        "AcceptedElicitation AssistantMessage Audio CancelledElicitation Context DEFAULT_RESOURCE_SECURITY "
        "DeclinedElicitation Elicit ElicitationResult Extension Icon Image ListRoots Message RequestStateSecurity "
        "Resolve ResourceBinding ResourceSecurity Sample ToolBinding UserMessage require_client_extension",
        "mcpace",
    ),
    Row(
        "mcp.server.elicitation",
        "AcceptedElicitation AcceptedUrlElicitation CancelledElicitation DeclinedElicitation ElicitationResult",
        "mcpace",
    ),
    Row("mcp.server.extension", "Extension ResourceBinding ToolBinding", "mcpace"),
    Row("mcp.server.context", "ServerRequestContext=RequestContext", "mcpace"),
    Row("mcp.server", "CacheHint ServerRequestContext=RequestContext", "mcpace"),
    Row("mcp.server.caching", "CacheHint", "mcpace"),
    Row("mcp.server.request_state", "RequestStateSecurity", "mcpace"),
    Row("mcp.server.subscriptions", "InMemorySubscriptionBus SubscriptionBus", "mcpace"),
    Row("mcp.server.auth.provider", "AccessToken TokenVerifier", "mcpace"),
    Row("mcp.server.auth.settings", "AuthSettings", "mcpace"),
    Row("mcp.server.auth.middleware.auth_context", "get_access_token", "mcpace"),
    Row("mcp.shared.context", "RequestContext", "mcpace"),
    Row("mcp mcp.shared.exceptions", "MCPError UrlElicitationRequiredError", "mcpace"),
    Row("mcp mcp.shared.exceptions", "McpError", "mcpace"),
    Row("mcp mcp.server.session", "ServerSession", "mcpace"),
    Row("mcp.server.transport_security", "TransportSecuritySettings", "mcpace"),
    Row("mcp mcp.shared.uri_template", "InvalidUriTemplate UriTemplate", "mcpace"),
    Row("mcp.shared.path_security", "safe_join", "mcpace"),
    Row("mcp mcp.client", "Client", "mcpace"),
    Row(
        "mcp.types mcp_types",
        "Annotations AudioContent BlobResourceContents CallToolResult ClientCapabilities Completion "
        "CompletionArgument CompletionContext ContentBlock CreateMessageRequest CreateMessageRequestParams "
        "CreateMessageResult CreateMessageResultWithTools ElicitRequest ElicitRequestFormParams ElicitRequestParams "
        "ElicitRequestURLParams ElicitResult ElicitationCapability EmbeddedResource ErrorData GetPromptResult "
        "INTERNAL_ERROR INVALID_PARAMS INVALID_REQUEST Icon ImageContent Implementation IncludeContext InputRequest "
        "InputRequests InputRequiredResult InputResponse InputResponses ListRootsRequest ListRootsResult LoggingLevel "
        "METHOD_NOT_FOUND MISSING_REQUIRED_CLIENT_CAPABILITY ModelHint ModelPreferences PARSE_ERROR Prompt "
        "PromptArgument PromptMessage PromptReference REQUEST_TIMEOUT ReadResourceResult RequestId Resource "
        "ResourceContents ResourceLink ResourceTemplate ResourceTemplateReference Result Role Root RootsCapability "
        "SamplingCapability SamplingContent SamplingMessage SamplingMessageContentBlock StopReason TextContent "
        "TextResourceContents Tool ToolAnnotations ToolChoice ToolResultContent ToolUseContent "
        "URL_ELICITATION_REQUIRED",
        "mcpace.types",
    ),
    Row(
        "mcp",
        "ClientCapabilities CreateMessageResult CreateMessageResultWithTools ErrorData GetPromptResult Implementation "
        "ReadResourceResult Resource RootsCapability SamplingCapability SamplingMessage Tool",
        "mcpace.types",
    ),
    Row(
        "mcp.types mcp_types",
        "BaseMetadata CLIENT_CAPABILITIES_META_KEY CLIENT_INFO_META_KEY CONNECTION_CLOSED CacheableResult "
        "CallToolRequest CallToolRequestParams CancelledNotification CancelledNotificationParams "
        "CompleteRequest CompleteRequestParams CompleteResult CompletionsCapability "
        "DEFAULT_NEGOTIATED_VERSION DiscoverRequest DiscoverResult ElicitCompleteNotification "
        "ElicitCompleteNotificationParams ElicitRequestedSchema ElicitationRequiredErrorData EmptyResult "
        "FormElicitationCapability GetPromptRequest GetPromptRequestParams HEADER_MISMATCH InitializeRequest "
        "InitializeRequestParams InitializeResult InitializedNotification InputResponseRequestParams "
        "JSONRPCError JSONRPCNotification JSONRPCRequest JSONRPCResponse JSONRPC_VERSION "
        "LATEST_PROTOCOL_VERSION LOG_LEVEL_META_KEY ListPromptsRequest ListPromptsResult "
        "ListResourceTemplatesRequest ListResourceTemplatesResult ListResourcesRequest ListResourcesResult "
        "ListToolsRequest ListToolsResult LoggingCapability LoggingMessageNotification "
        "LoggingMessageNotificationParams MissingRequiredClientCapabilityErrorData Notification "
        "NotificationParams PROTOCOL_VERSION_META_KEY PaginatedRequest PaginatedRequestParams PaginatedResult "
        "PingRequest ProgressNotification ProgressNotificationParams ProgressToken "
        "PromptListChangedNotification PromptsCapability ReadResourceRequest ReadResourceRequestParams "
        "Request RequestParams ResourceListChangedNotification ResourceUpdatedNotification "
        "ResourceUpdatedNotificationParams ResourcesCapability RootsListChangedNotification "
        "SERVER_INFO_META_KEY SamplingContextCapability SamplingToolsCapability ServerCapabilities "
        "SetLevelRequest SetLevelRequestParams SubscribeRequest SubscribeRequestParams SubscriptionFilter "
        "SubscriptionsListenRequest SubscriptionsListenRequestParams ToolListChangedNotification "
        "ToolsCapability UNSUPPORTED_PROTOCOL_VERSION UnsubscribeRequest UnsubscribeRequestParams "
        "UnsupportedProtocolVersionErrorData UrlElicitationCapability",
        "mcpace.types",
    ),
    Row(
        "mcp",
        "CallToolRequest CompleteRequest GetPromptRequest IncludeContext InitializeRequest InitializeResult "
        "InitializedNotification JSONRPCError JSONRPCRequest JSONRPCResponse ListPromptsRequest "
        "ListPromptsResult ListResourcesRequest ListResourcesResult ListToolsResult LoggingLevel "
        "LoggingMessageNotification Notification PingRequest ProgressNotification PromptsCapability "
        "ReadResourceRequest ResourceUpdatedNotification ResourcesCapability SamplingContent "
        "SamplingContextCapability SamplingMessageContentBlock SamplingToolsCapability ServerCapabilities "
        "SetLevelRequest StopReason SubscribeRequest ToolChoice ToolResultContent ToolUseContent "
        "ToolsCapability UnsubscribeRequest",
        "mcpace.types",
    ),
    Row("fastmcp", "FastMCP Context Client", "mcpace.fastmcp"),
    Row("fastmcp.client fastmcp.client.client", "Client", "mcpace.fastmcp"),
    Row("fastmcp.server", "FastMCP Context", "mcpace.fastmcp"),
    Row("fastmcp.server.server", "FastMCP", "mcpace.fastmcp"),
    Row("fastmcp.server.context", "Context", "mcpace.fastmcp"),
    Row(
        "fastmcp.server.dependencies",
        "AccessToken CurrentAccessToken CurrentContext CurrentFastMCP CurrentHeaders CurrentRequest Progress "
        "TokenClaim get_access_token get_context get_http_headers get_http_request get_server",
        "mcpace.fastmcp",
    ),
    Row(
        "fastmcp.dependencies",
        "CallArgument CurrentAccessToken CurrentContext CurrentFastMCP CurrentHeaders CurrentRequest Dependency "
        "Depends Progress TokenClaim",
        "mcpace.fastmcp",
    ),
    Row(
        "fastmcp.server.middleware fastmcp.server.middleware.middleware",
        "CallNext Middleware MiddlewareContext",
        "mcpace.fastmcp",
    ),
    Row("fastmcp.server.auth", "AuthContext require_roles require_scopes restrict_tag", "mcpace.fastmcp"),
    Row("fastmcp.server.auth", "AccessToken JWTVerifier StaticTokenVerifier TokenVerifier", "mcpace"),
    Row("fastmcp.server.auth.providers.jwt", "JWTVerifier StaticTokenVerifier", "mcpace"),
    Row("fastmcp.server.auth.providers.introspection", "IntrospectionTokenVerifier", "mcpace"),
    Row("fastmcp.server.elicitation", "AcceptedElicitation CancelledElicitation DeclinedElicitation", "mcpace"),
    Row(
        "fastmcp.exceptions",
        "AuthorizationError DisabledError FastMCPError MCPError McpError NotFoundError PromptError ResourceError "
        "ToolError ValidationError",
        "mcpace.fastmcp",
    ),
    Row(
        "fastmcp.prompts fastmcp.prompts.prompt", "FunctionPrompt Message Prompt PromptResult prompt", "mcpace.fastmcp"
    ),
    Row("fastmcp.prompts.base", "Message Prompt PromptResult", "mcpace.fastmcp"),
    Row("fastmcp.prompts.function_prompt", "FunctionPrompt prompt", "mcpace.fastmcp"),
    Row(
        "fastmcp.resources",
        "BinaryResource DirectoryResource FileResource FunctionResource HttpResource Resource ResourceContent "
        "ResourceResult ResourceSecurity ResourceTemplate TextResource resource",
        "mcpace.fastmcp",
    ),
    Row("fastmcp.resources.base", "Resource ResourceContent ResourceResult", "mcpace.fastmcp"),
    Row(
        "fastmcp.resources.resource fastmcp.resources.function_resource", "FunctionResource resource", "mcpace.fastmcp"
    ),
    Row(
        "fastmcp.resources.types",
        "BinaryResource DirectoryResource FileResource HttpResource TextResource",
        "mcpace.fastmcp",
    ),
    Row("fastmcp.resources.template", "ResourceTemplate", "mcpace.fastmcp"),
    Row("fastmcp.resources.security", "ResourceSecurity", "mcpace.fastmcp"),
    Row("fastmcp.tools fastmcp.tools.tool fastmcp.tools.function_tool", "FunctionTool tool", "mcpace.fastmcp"),
    Row("fastmcp.tools fastmcp.tools.tool fastmcp.tools.base", "Tool ToolResult", "mcpace.fastmcp"),
    Row("fastmcp.tools.function_tool", "ToolResult", "mcpace.fastmcp"),
    Row("fastmcp.utilities.types", "Audio File Image", "mcpace.fastmcp"),
)

COUNTERPARTS: dict[tuple[str, str], tuple[str, str]] = {
    (module, name.partition("=")[0]): (row.target, name.rpartition("=")[2])
    for row in ROWS
    for module in row.modules.split()
    for name in row.names.split()
}
"""Module and name of an SDK → module and name of mcpace."""

WHOLE = {"mcp.types": "mcpace.types", "mcp_types": "mcpace.types"}
"""Modules whose names keep their names, so that a star import can be rewritten."""

PACKAGES = ("mcp", "mcp_types", "fastmcp")

SERVERS = {"FastMCP", "MCPServer"}
"""Classes whose import says that a file's server can be swapped."""
ENGINES = {
    ("mcp.server", "Server"),
    ("mcp.server.lowlevel", "Server"),
    ("mcp.server.lowlevel.server", "Server"),
    ("mcp", "ClientSession"),
    ("mcp", "ClientSessionGroup"),
    ("mcp.client.session", "ClientSession"),
}
"""Classes that work with the SDK's own types alone: a file that has one of these and none of SERVERS stays as it is."""

ISSUES_NONE = "mcpace issues no tokens: verify those of an authorization server (docs/python.md, Who may call), or "
TOKENS = "use token_verifier= with mcpace.JWTVerifier or mcpace.IntrospectionTokenVerifier, or "
SERVE = "leave the file as it is and run it with `mcpace serve`"
LOW_LEVEL = "low-level servers are not rewritten: " + SERVE
ADVICE = {
    "mcp.server.lowlevel": LOW_LEVEL,
    "mcp.server:Server": LOW_LEVEL,
    "mcp.server.stdio": "call `run()` of mcpace.MCPServer, or " + SERVE,
    "mcp.server.sse": 'call `run("sse")` of mcpace.MCPServer, or ' + SERVE,
    "mcp.server.streamable_http": "give `run` or `mcpace serve` a store for sessions and streams (docs/scale.md)",
    "mcp.server.transport_security": "use the keywords allowed_hosts and allowed_origins of `run`, or the options of "
    "`mcpace serve`",
    "mcp.server.auth": ISSUES_NONE + SERVE,
    "mcp.client": "use mcpace.Client, or keep the SDK's client in a file of its own",
    "mcp:ClientSession": "use mcpace.Client, or keep the SDK's client in a file of its own",
    "mcp:ClientSessionGroup": "use mcpace.Client, or keep the SDK's client in a file of its own",
    "mcp.shared.memory": "use mcpace.Client, or mcpace.testing (docs/testing.md)",
    "mcp.types": "mcpace.types has no such type; build the answer with those it has, or " + SERVE,
    "fastmcp.client": "use mcpace.Client, or mcpace.testing (docs/testing.md)",
    "fastmcp.server.auth": TOKENS + SERVE,
    "fastmcp.server.middleware": "derive from mcpace.fastmcp.Middleware, or " + SERVE,
    "fastmcp.server.providers": "use mount(), or " + SERVE,
    "fastmcp.server.transforms": SERVE,
    "fastmcp.apps": SERVE,
    "fastmcp.utilities.tests": "use mcpace.testing (docs/testing.md)",
}
"""Module, or `module:name`, → the advice; the longest that fits is given."""


def advice(module: str, name: str | None) -> str:
    """What to do about an import that has no counterpart."""
    if name is not None and (found := ADVICE.get(f"{module}:{name}")):
        return found
    parts = f"{module}.{name}".split(".") if name else module.split(".")
    while parts:
        if found := ADVICE.get(".".join(parts)):
            return found
        parts.pop()
    return SERVE
