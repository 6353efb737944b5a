"""The HTTP request that a foreign server's code may look at, made of what the runtime kept of it.

Only a server that has starlette loaded can look at one, so importing it here brings nothing that isn't there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from mcpace._core import Exchange


def request_of(exchange: Exchange, user: Any = None) -> Any | None:
    """A ``starlette.requests.Request`` of the POST; ``None`` where the request came another way than HTTP."""
    headers, connection = exchange.headers, exchange.connection
    own = sys.modules.get("fastmcp.server.context")
    if own is not None:
        # FastMCP trusts whoever calls over stdio, and keeps what callers over HTTP left apart.
        own._current_transport.set("stdio" if headers is None else "streamable-http")
    if headers is None or connection is None:
        return None
    from starlette.requests import Request

    client, server, scheme = connection
    path, _, query = (exchange.target or "/").partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": scheme,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": client,
        "server": server,
    }
    if user is not None:
        from starlette.authentication import AuthCredentials

        scope["user"], scope["auth"] = user, AuthCredentials(user.scopes)
    return Request(scope, _no_body)


async def _no_body() -> dict[str, Any]:
    # The runtime has read it; what it held is in the parameters.
    return {"type": "http.request", "body": b"", "more_body": False}
