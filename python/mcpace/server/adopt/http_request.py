"""The Starlette request that an adopted server's code may inspect, rebuilt from the runtime's copy.

A server can inspect one only if it has loaded starlette, so importing it here loads nothing new.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from mcpace._core import Exchange


def request_of(exchange: Exchange, user: Any = None) -> Any | None:
    """A ``starlette.requests.Request`` of the POST; ``None`` for a request that did not arrive over HTTP."""
    headers, connection = exchange.headers, exchange.connection
    own = sys.modules.get("fastmcp.server.context")
    if own is not None:
        # FastMCP trusts callers over stdio, and separates the state of callers over HTTP.
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
    # The runtime has read the body; its content is in the parameters.
    return {"type": "http.request", "body": b"", "more_body": False}
