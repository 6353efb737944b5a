"""On mcpace: each call has a token that its issuer is asked about, at the URL in the environment."""

import os

from mcpace import AuthSettings, IntrospectionTokenVerifier, MCPServer

RESOURCE = "https://mcp.example/mcp"

mcp = MCPServer(
    "introspecting",
    token_verifier=IntrospectionTokenVerifier(
        introspection_url=os.environ["INTROSPECTION_URL"],
        client_id="server",
        client_secret="of no use to anybody",
        audience=RESOURCE,
        cache_ttl_seconds=float(os.environ["LIFETIME_S"]),
    ),
    auth=AuthSettings.model_validate(
        {"issuer_url": "https://auth.example", "resource_server_url": RESOURCE, "required_scopes": ["read"]}
    ),
)


@mcp.tool()
def double(n: int) -> dict[str, int]:
    """Twice the number."""
    return {"result": n * 2}
