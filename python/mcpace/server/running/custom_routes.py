"""Custom routes: other paths of the server's port, answered by functions of a Starlette request.

Design constraint: starlette is loaded only if a route is registered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcpace.server.errors import RegistrationError


def route(path: str, function: Callable[..., Any], methods: Sequence[str], name: str | None, in_schema: bool) -> Any:
    """A route. Raises ``RegistrationError`` where starlette is missing."""
    if not path.startswith("/"):
        raise RegistrationError(f"custom_route({path!r}): a path begins with a slash")
    try:
        from starlette.routing import Route
    except ImportError as error:
        raise RegistrationError(
            f"custom_route({path!r}) needs starlette, which is not installed: pip install 'mcpace[routes]'"
        ) from error
    return Route(path, endpoint=function, methods=list(methods), name=name, include_in_schema=in_schema)


def application(routes: Sequence[Any], debug: bool) -> Any:
    """The ASGI application of all routes."""
    from starlette.applications import Starlette

    return Starlette(debug=debug, routes=list(routes))
