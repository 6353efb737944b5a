"""The Starlette application of a server's endpoint and custom routes, as the official SDK makes it.

Loaded by ``streamable_http_app()`` and ``sse_app()``; needs starlette. ``server.asgi()`` needs no package.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from mcpace.server.running.application import MESSAGES_PATH, METADATA_PATH, SSE_PATH, Application
from mcpace.server.running.session_manager import SessionManager


class ServerApplication(Starlette):
    """A Starlette application that serves MCP. Its lifespan starts and ends the server."""

    def __init__(self, application: Application, routes: Sequence[Any], *, debug: bool) -> None:
        def lifespan(_: Any) -> AbstractAsyncContextManager[None]:
            return SessionManager(application).run()

        super().__init__(debug=debug, routes=routes, lifespan=lifespan)

    @property
    def lifespan(self) -> Any:
        """The lifespan, for a host that passes it on: ``FastAPI(lifespan=application.lifespan)``."""
        return self.router.lifespan_context


def streamable_http(
    application: Application, path: str, custom: Sequence[Any], *, has_auth: bool, debug: bool
) -> ServerApplication:
    """The application of the Streamable HTTP transport, with its endpoint at ``path``."""
    routes = [Route(path, endpoint=_At(application, path))]
    return _whole(application, routes, custom, has_auth, debug)


def sse(
    application: Application,
    sse_path: str,
    message_path: str,
    mount_path: str,
    custom: Sequence[Any],
    *,
    has_auth: bool,
    debug: bool,
) -> ServerApplication:
    """The application of the HTTP+SSE transport. Clients are told of ``message_path`` below ``mount_path``."""
    messages = f"{mount_path.rstrip('/')}/{message_path.lstrip('/')}"
    routes = [
        Route(sse_path, endpoint=_At(application, SSE_PATH, messages), methods=None),
        Mount(message_path, app=_At(application, MESSAGES_PATH)),
    ]
    return _whole(application, routes, custom, has_auth, debug)


def _whole(
    application: Application, routes: list[Any], custom: Sequence[Any], has_auth: bool, debug: bool
) -> ServerApplication:
    if has_auth:
        routes.append(Mount(METADATA_PATH, app=_Metadata(application)))
    # Custom routes come last, as in the SDKs: they never hide the endpoint.
    return ServerApplication(
        application, [*routes, *(_custom_route(application, route) for route in custom)], debug=debug
    )


class _At:
    """The endpoint at a path of the application; ``path`` is the runtime's own path."""

    def __init__(self, application: Application, path: str, messages: str | None = None) -> None:
        self._application = application
        self._path = path
        self._messages = messages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._messages is not None:
            send = _rewrite_endpoint_event(f"{scope.get('root_path', '').rstrip('/')}{self._messages}", send)
        await self._application.answer(scope, receive, send, self._path)


class _Metadata:
    """The metadata of the protected resource, below its well-known path."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        await self._application.answer(scope, receive, send, path[path.index(METADATA_PATH) :])


def _rewrite_endpoint_event(messages: str, send: Send) -> Send:
    """Forwards a stream of the runtime, with another address for messages in its first event."""
    is_told = False

    async def tell(event: Any) -> None:
        nonlocal is_told
        body = event.get("body")
        if body and not is_told:
            is_told = True
            event = {
                **event,
                "body": body.replace(f"data: {MESSAGES_PATH}?".encode(), f"data: {messages}?".encode(), 1),
            }
        await send(event)

    return tell


def _custom_route(application: Application, route: Any) -> Any:
    """A custom route whose function runs on the runtime's event loop."""
    function = route.app

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await application.answer_beside(function, scope, receive, send)

    own = copy.copy(route)
    own.app = answer
    return own
