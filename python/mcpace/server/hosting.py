"""The side of a server that is hosted: run over stdio and HTTP, mounted, and told of changes.

Design constraint: only the surface; nothing of the compiled part is loaded before one of these is called.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, cast

from mcpace.server.settings import FunctionT, LifespanT, Parts


class Hosting(Parts[LifespanT]):
    """See the module."""

    def custom_route(
        self, path: str, methods: list[str], name: str | None = None, include_in_schema: bool = True
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function of a Starlette request for another path, such as a health check. Needs no token.

        Needs starlette: ``pip install 'mcpace[routes]'``.
        """
        from mcpace.server.running.custom_routes import route

        def register(fn: FunctionT) -> FunctionT:
            self._routes.append(route(path, fn, methods, name, include_in_schema))
            return fn

        return register

    def run(self, transport: Literal["stdio", "sse", "streamable-http"] = "stdio", **kwargs: Any) -> None:
        """Serves until it is told to stop: over stdio, or over HTTP at ``host`` and ``port``.

        The keywords are the official SDK's (``streamable_http_path``, ``json_response``, ``stateless_http``, …), and
        the runner's settings: ``store="redis://…"`` keeps sessions and streams where several processes find them. What
        the constructor was given holds where a keyword is left out.
        """
        from mcpace.server.running.transports import run

        run(self._server, transport, kwargs)

    async def run_stdio_async(self) -> None:
        """Serves over stdio, within a running event loop."""
        from mcpace.server.running.transports import run_async

        await run_async(self._server, "stdio", {})

    async def run_sse_async(self, **kwargs: Any) -> None:
        """Serves the HTTP+SSE transport of 2024-11-05, within a running event loop."""
        from mcpace.server.running.transports import run_async

        await run_async(self._server, "sse", kwargs)

    async def run_streamable_http_async(self, **kwargs: Any) -> None:
        """Serves over HTTP, within a running event loop."""
        from mcpace.server.running.transports import run_async

        await run_async(self._server, "streamable-http", kwargs)

    def asgi(self, **kwargs: Any) -> Any:
        """An ASGI application, to be mounted in another one or run by its server. Needs no package."""
        from mcpace.server.running.transports import asgi

        self._application = asgi(self._server, kwargs)
        return self._application

    def streamable_http_app(self, **kwargs: Any) -> Any:
        """A Starlette application, with the official SDK's keywords: the endpoint, custom routes and a ``lifespan``.

        Needs starlette: ``pip install 'mcpace[routes]'``.
        """
        from mcpace.server.running.transports import streamable_http_app

        self._application, application = streamable_http_app(self._server, kwargs)
        return application

    def sse_app(self, mount_path: str | None = None, **kwargs: Any) -> Any:
        """A Starlette application of the HTTP+SSE transport of 2024-11-05, with the official SDK's keywords."""
        from mcpace.server.running.transports import sse_app

        given = kwargs if mount_path is None else {**kwargs, "mount_path": mount_path}
        self._application, application = sse_app(self._server, given)
        return application

    @property
    def session_manager(self) -> Any:
        """Begins and ends the mounted application with its host: ``async with server.session_manager.run(): …``."""
        if self._application is None:
            raise RuntimeError("session_manager is of a mounted server: call streamable_http_app() or asgi() first")
        from mcpace.server.running.session_manager import SessionManager

        return SessionManager(self._application)

    def notify_list_changed(self, kind: Literal["tools", "resources", "prompts"]) -> Awaitable[None]:
        """Tells clients that a list changed. Adding and removing does so by itself."""
        from mcpace.server.core.subscriptions import EVENTS

        return self._publish(EVENTS[kind]())

    def notify_resource_updated(self, uri: str) -> Awaitable[None]:
        """Tells the clients that subscribed to a resource that it changed."""
        from mcpace.server.core.subscriptions import ResourceUpdated

        return self._publish(ResourceUpdated(uri))

    async def notify(self, session_id: str, method: str, params: Any = None) -> None:
        """Tells the client of one session something that belongs to no request.

        With a store (``run(store="redis://…")``) any process can, whichever has the client's stream; the message is in
        the store when this returns, and waits there for a client that reads nothing at the moment. Without one, the
        session has to be of this process and its stream open. Raises ``LookupError`` where there is no such session,
        ``ConnectionError`` where its client can't be reached.
        """
        core = self._inside.started
        if core is None:
            raise LookupError("there is no such session: the server isn't running")
        await core.notify(session_id, method, _params(params))

    async def broadcast(self, method: str, params: Any = None) -> None:
        """Tells the clients of all sessions that read a stream something; with a store, those of every process. Raises
        ``ConnectionError`` where the other processes can't be reached."""
        core = self._inside.started
        if core is not None:
            await core.notify_all(method, _params(params))

    def _publish(self, event: Any) -> Awaitable[None]:
        """Happens at once; what is returned need only be awaited where there is a bus."""
        if self._bus is None:
            self._tell(event)
            return _Done()
        return cast("Awaitable[None]", self._bus.publish(event))

    def _tell(self, event: Any) -> None:
        core = self._inside.started
        if core is None:
            return
        from mcpace.server.core.subscriptions import list_of, uri_of

        # A bus brings the event to each process by itself; where there is none, a shared store does.
        everywhere = self._bus is None
        uri, kind = uri_of(event), list_of(event)
        if uri is not None:
            core.resource_updated(uri, everywhere=everywhere)
        elif kind is not None:
            core.list_changed(kind, everywhere=everywhere)


def _params(params: Any) -> str | None:
    """Parameters as JSON: an object, or a model of one."""
    if params is None:
        return None
    from pydantic_core import to_json

    from mcpace.types import wire

    text = to_json(wire(params) if hasattr(params, "model_dump") else params)
    if not text.startswith(b"{"):
        raise TypeError(f"params are an object, by names, not {type(params).__name__}")
    return text.decode()


class _Done:
    """Already done, and may be awaited all the same."""

    def __await__(self) -> Any:
        return iter(())
