"""The side of a server that is hosted: run over stdio and HTTP, mounted, and told of changes.

Design constraint: only the surface; nothing of the compiled part is loaded before one of these is called.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, cast

from mcpace.server.parts import FunctionT, LifespanT, Parts


class Hosting(Parts[LifespanT]):
    """See the module."""

    def custom_route(
        self, path: str, methods: list[str], name: str | None = None, include_in_schema: bool = True
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function of a Starlette request for another path, such as a health check. Needs no token.

        Needs starlette: ``pip install 'mcpace[routes]'``.
        """
        from mcpace.server.routes import route

        def register(fn: FunctionT) -> FunctionT:
            self._routes.append(route(path, fn, methods, name, include_in_schema))
            return fn

        return register

    def run(self, transport: Literal["stdio", "sse", "streamable-http"] = "stdio", **kwargs: Any) -> None:
        """Serves until it is told to stop: over stdio, or over HTTP at ``host`` and ``port``.

        The keywords are the official SDK's (``streamable_http_path``, ``json_response``, ``stateless_http``, …).
        """
        from mcpace.server.launch import run

        run(self._server, transport, kwargs)

    async def run_stdio_async(self) -> None:
        """Serves over stdio, within a running event loop."""
        from mcpace.server.launch import run_async

        await run_async(self._server, "stdio", {})

    async def run_sse_async(self, **kwargs: Any) -> None:
        """Serves the HTTP+SSE transport of 2024-11-05, within a running event loop."""
        from mcpace.server.launch import run_async

        await run_async(self._server, "sse", kwargs)

    async def run_streamable_http_async(self, **kwargs: Any) -> None:
        """Serves over HTTP, within a running event loop."""
        from mcpace.server.launch import run_async

        await run_async(self._server, "streamable-http", kwargs)

    def asgi(self, **kwargs: Any) -> Any:
        """An ASGI application, to be mounted in another one or run by its server."""
        from mcpace.server.launch import asgi

        self._application = asgi(self._server, "streamable-http", kwargs)
        return self._application

    def streamable_http_app(self, **kwargs: Any) -> Any:
        """An ASGI application, with the official SDK's keywords."""
        return self.asgi(**kwargs)

    def sse_app(self, **kwargs: Any) -> Any:
        """An ASGI application of the HTTP+SSE transport, with the official SDK's keywords."""
        from mcpace.server.launch import asgi

        self._application = asgi(self._server, "sse", kwargs)
        return self._application

    @property
    def session_manager(self) -> Any:
        """Begins and ends the mounted application with its host: ``async with server.session_manager.run(): …``."""
        if self._application is None:
            raise RuntimeError("session_manager is of a mounted server: call streamable_http_app() or asgi() first")
        from mcpace.server.mounting import SessionManager

        return SessionManager(self._application)

    def notify_list_changed(self, kind: Literal["tools", "resources", "prompts"]) -> Awaitable[None]:
        """Tells clients that a list changed. Adding and removing does so by itself."""
        from mcpace.server.subscriptions import EVENTS

        return self._publish(EVENTS[kind]())

    def notify_resource_updated(self, uri: str) -> Awaitable[None]:
        """Tells the clients that subscribed to a resource that it changed."""
        from mcpace.server.subscriptions import ResourceUpdated

        return self._publish(ResourceUpdated(uri))

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
        from mcpace.server.subscriptions import list_of, uri_of

        uri, kind = uri_of(event), list_of(event)
        if uri is not None:
            core.resource_updated(uri)
        elif kind is not None:
            core.list_changed(kind)


class _Done:
    """Already done, and may be awaited all the same."""

    def __await__(self) -> Any:
        return iter(())
