"""The names of the official SDK (mcp 1.x, 2.x) and FastMCP (3, 4) that mcpace has, and advice on those it has not.

Data alone. tests/python/compat/test_migrate.py checks that each name on the left exists in a release of its SDK, and
each name on the right in mcpace.
"""

from __future__ import annotations

import importlib
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
    Row("mcp.server.context", "ServerRequestContext", "mcpace"),
    Row("mcp.server", "CacheHint ServerRequestContext", "mcpace"),
    Row("mcp.server.session", "ServerSession", "mcpace"),
    Row("mcp.server.transport_security", "TransportSecuritySettings", "mcpace"),
    Row("mcp.shared.uri_template", "UriTemplate InvalidUriTemplate", "mcpace"),
    Row("mcp.server.caching", "CacheHint", "mcpace"),
    Row("mcp.server.request_state", "RequestStateSecurity", "mcpace"),
    Row("mcp.server.subscriptions", "InMemorySubscriptionBus SubscriptionBus", "mcpace"),
    Row("mcp.server.auth.provider", "AccessToken TokenVerifier", "mcpace"),
    Row("mcp.server.auth.settings", "AuthSettings", "mcpace"),
    Row("mcp.server.auth.middleware.auth_context", "get_access_token", "mcpace"),
    Row("mcp.shared.context", "RequestContext", "mcpace"),
    Row("mcp mcp.shared.exceptions", "MCPError McpError UrlElicitationRequiredError", "mcpace"),
    Row("mcp.shared.path_security", "safe_join", "mcpace"),
    Row("mcp mcp.client", "Client", "mcpace"),
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
    Row("fastmcp.server.auth", "AuthContext MultiAuth require_roles require_scopes restrict_tag", "mcpace.fastmcp"),
    Row("fastmcp.server.transforms", "PromptsAsTools ResourcesAsTools", "mcpace.fastmcp"),
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
"""Modules of which every name that mcpace's module has is its counterpart."""
ALSO = {**WHOLE, "mcp": "mcpace.types"}
"""Modules that have such names among others."""

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

ISSUES_NONE = "mcpace issues no tokens: verify those of an authorization server with token_verifier=, or "
TOKENS = "use token_verifier= with mcpace.JWTVerifier or mcpace.IntrospectionTokenVerifier, or "
SERVE = "leave the file as it is and run it with `mcpace serve`"
LOW_LEVEL = "low-level servers are not rewritten: " + SERVE
STAR = "import each name explicitly, and run `mcpace migrate` again"
ADVICE = {
    "mcp.server.lowlevel": LOW_LEVEL,
    "mcp.server:Server": LOW_LEVEL,
    "mcp.server.stdio": "call `run()` of mcpace.MCPServer, or " + SERVE,
    "mcp.server.sse": 'call `run("sse")` of mcpace.MCPServer, or ' + SERVE,
    "mcp.server.streamable_http": "give `run` or `mcpace serve` a store for sessions and streams, such as `--store redis://HOST/0`",
    "mcp.server.auth": ISSUES_NONE + SERVE,
    "mcp.server.session": "the session of a call is `ctx.session`",
    "mcp.client": "use mcpace.Client, or keep the SDK's client in a file of its own",
    "mcp:ClientSession": "use mcpace.Client, or keep the SDK's client in a file of its own",
    "mcp:ClientSessionGroup": "use mcpace.Client, or keep the SDK's client in a file of its own",
    "mcp.shared.memory": "use mcpace.Client, or mcpace.testing",
    "mcp.types": "mcpace.types has no such type; build the answer with those it has, or " + SERVE,
    "fastmcp.client": "use mcpace.Client, or mcpace.testing",
    "fastmcp.server.auth": TOKENS + SERVE,
    "fastmcp.server.middleware": "derive from mcpace.fastmcp.Middleware, or " + SERVE,
    "fastmcp.server.providers": "use mount(), or " + SERVE,
    "fastmcp.server.transforms": SERVE,
    "fastmcp.apps": SERVE,
    "fastmcp.utilities.tests": "use mcpace.testing",
}
"""Module, or `module:name`, → the advice; the longest that fits is given."""


def find_counterpart(module: str, name: str) -> tuple[str, str] | None:
    """The module and the name of mcpace that stand for a name of an SDK."""
    whole = ALSO.get(module)
    if (module, name) in COUNTERPARTS:
        return COUNTERPARTS[module, name]
    if whole is not None and not name.startswith("_") and hasattr(importlib.import_module(whole), name):
        return whole, name
    return None


def advice(module: str, name: str | None) -> str:
    """The advice for an import without a counterpart."""
    if name == "*":
        return STAR
    if name is not None and (found := ADVICE.get(f"{module}:{name}")):
        return found
    parts = f"{module}.{name}".split(".") if name else module.split(".")
    while parts:
        if found := ADVICE.get(".".join(parts)):
            return found
        parts.pop()
    return SERVE
