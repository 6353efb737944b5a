"""The HTTP options of an adopted server, derived from its construction: verification of tokens, and other paths.

The server's own verifier verifies tokens, and the runtime sends the refusals. The SDK's application answers the
server's own routes, including those of its authorization server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mcpace.server.adopt.server_kinds import Kind

UNKNOWN_RESOURCE = "http://localhost:8000/mcp"
"""The URL of a server that names none: the address that a client on this machine uses."""


def options_of(server: Any, kind: Kind) -> dict[str, Any]:
    """Keywords of ``_core.HttpOptions``."""
    match kind:
        case Kind.LOWLEVEL:
            return {}
        case Kind.FASTMCP:
            return _fastmcp(server)
        case Kind.MCPSERVER | Kind.FASTMCP_1:
            return _official(server)


def _official(server: Any) -> dict[str, Any]:
    options: dict[str, Any] = {}
    settings, verifier = server.settings.auth, server._token_verifier
    if verifier is not None:
        resource = settings.resource_server_url
        options |= {
            "token_verifier": _resource_verifier(verifier.verify_token, settings),
            "resource": str(resource or UNKNOWN_RESOURCE),
            "authorization_servers": [str(settings.issuer_url)],
            "required_scopes": list(settings.required_scopes or ()),
        }
    if server._custom_starlette_routes or server._auth_server_provider is not None:
        options["asgi"] = server.streamable_http_app()
    return options


def _fastmcp(server: Any) -> dict[str, Any]:
    options: dict[str, Any] = {}
    auth = server.auth
    if auth is not None:
        base = getattr(auth, "base_url", None)
        servers = getattr(auth, "authorization_servers", None) or ([base] if base else [])
        options |= {
            "token_verifier": _resource_verifier(auth.verify_token, None),
            "resource": f"{str(base).rstrip('/')}/mcp" if base else UNKNOWN_RESOURCE,
            "authorization_servers": [str(url) for url in servers],
            "required_scopes": list(getattr(auth, "required_scopes", None) or ()),
        }
    if server._additional_http_routes or auth is not None:
        options["asgi"] = server.http_app()
    return options


def _resource_verifier(verify: Callable[[str], Awaitable[Any]], settings: Any) -> Callable[..., Awaitable[Any]]:
    """Calls the server's verifier, and checks the resource that a token is for. (The runtime checks the expiry.)"""
    wanted = settings.resource_server_url if getattr(settings, "validate_token_resource", False) else None

    async def verified(token: str) -> Any:
        access = await verify(token)
        if access is None:
            return None
        if wanted is not None and str(access.resource or "").rstrip("/") != str(wanted).rstrip("/"):
            return None
        return access

    return verified
