"""What the package needs to know of a server and its author doesn't: how it is called, wrapped and told of.

Design constraint: ``MCPServer`` has one private member for all of this, so that its public face is the official SDK's.
The key that signs state is made when it is asked for, and kept nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from mcpace.server.auth.guards import guards_of
from mcpace.server.auth.principal import remember
from mcpace.server.core import wire_settings
from mcpace.server.sdk_compat.shared_types import check_middleware
from mcpace.types import wire

if TYPE_CHECKING:
    from mcpace import _core
    from mcpace.server.app import MCPServer
    from mcpace.server.auth.guards import Guards
    from mcpace.server.calls.context import Context
    from mcpace.server.core.exchange_loop import Desk
    from mcpace.server.registration.dependency_providers import Providers


class Inside:
    """See the module."""

    def __init__(
        self,
        server: MCPServer[Any],
        cache: wire_settings.CacheHint,
        security: Any,
        named: str | None,
        guards: Guards,
        providers: Providers,
    ) -> None:
        self._server = server
        self._security = security
        self._named = named
        self.cache = cache
        """How long clients may keep what they read."""
        self.guards = guards
        """Of all that is registered."""
        self.providers = providers
        self.extensions: list[Any] = []
        self.desk: Desk | None = None
        """Answers requests for lists, where middleware has a say in them."""
        self.limiter: _core.Limiter | None = None
        """Who counts uses, where it isn't the compiled part's own."""
        self._shared_limiter: tuple[str, str, str] | None = None
        self.believes = False
        """Whether there are callers within the process who are believed to be who they say they are. To be set before
        the compiled part has begun."""
        self.started: _core.Server | None = None
        """The compiled part's registry, once there is one."""
        # What doesn't fit is said when the server is made.
        self.state_key()

    @property
    def core(self) -> _core.Server:
        """The compiled part's registry of this server."""
        if self.started is None:
            for middleware in self._server.middleware:
                check_middleware(middleware)
            core = self._new_core()
            self._server.registry.bind(core)
            if self._server.middleware:
                from mcpace.server.core.list_requests import METHODS, desk_of

                self.desk = desk_of(self._server)
                core.delegate(self.desk.submit, METHODS)
            self.started = core
        return self.started

    def _new_core(self) -> _core.Server:
        """The compiled part's registry of the server, still empty."""
        from mcpace import _core

        server = self._server
        options: dict[str, Any] = {
            "title": server.title,
            "description": server.description,
            "instructions": server.instructions,
            "website_url": server.website_url,
            "icons": None if server.icons is None else to_json(self.icons),
            "ttl_ms": self.cache.ttl_ms or None,
            "cache_scope": self.cache.scope if self.cache.scope != "private" else None,
            "key": self.state_key(),
            "extensions": to_json(self.declared) if self.declared else None,
            "open": True,
            "limiter": self.limiter_of_core(),
            "max_tasks": server.max_tasks,
        }
        given = {name: value for name, value in options.items() if value is not None}
        return _core.Server(server.name, server.version, **given)

    def state_key(self) -> bytes | None:
        """What signs the state of rounds of questions; ``None`` for a random key."""
        return wire_settings.state_key(self._security, self._named)

    def count_by(self, limiter: _core.Limiter) -> None:
        """Has another limiter count uses. Raises ``RuntimeError`` where the compiled part has begun with one."""
        if self.started is not None:
            raise RuntimeError("the server has been used: who counts its calls is said before the first")
        self.limiter = limiter

    def count_over_all(self, url: str | None, on_store_down: str, prefix: str) -> None:
        """Has uses counted over all processes which share a Redis; nothing is connected yet."""
        if on_store_down not in ("refuse", "memory"):
            raise ValueError(f"on_store_down takes 'refuse' or 'memory', not {on_store_down!r}")
        if url is not None and not self._named:
            raise ValueError(
                "a server with a limiter needs a name, by which servers that count in one Redis are told apart: "
                'MCPServer("my-service", ...)'
            )
        self._shared_limiter = None if url is None else (url, on_store_down, prefix)

    def limiter_of_core(self) -> _core.Limiter | None:
        """Who counts uses; ``None`` for the compiled part's own. Connects where that takes a connection."""
        if self.limiter is not None or self._shared_limiter is None:
            return self.limiter
        from mcpace import _core

        url, on_store_down, prefix = self._shared_limiter
        return _core.redis_limiter(url, on_store_down=on_store_down, prefix=prefix)

    def guards_of(self, entry: Any) -> Guards:
        """All that guards an entry: its own guards, and the server's."""
        own = guards_of(entry)
        return own.within(self.guards) if self.guards else own

    def is_wrapped(self, method: str) -> bool:
        """Whether something of the author's wraps requests of a method."""
        return bool(self._server.middleware) or (method == "tools/call" and bool(self.interceptors))

    def contexts(self, method: str) -> Callable[[Any], Context[Any, Any]]:
        """What makes a call's context. It runs among the call's own context variables."""
        make = self._server._context
        if not self.remembers_principals:
            return lambda call: make(call, method)

        def remembering(call: Any) -> Context[Any, Any]:
            remember(call.principal)
            return make(call, method)

        return remembering

    @property
    def interceptors(self) -> Sequence[Any]:
        """The extensions with a hook around tool calls, outermost first."""
        if not self.extensions:
            return ()
        from mcpace.server.registration.extension import intercepts

        return [extension for extension in self.extensions if intercepts(extension)]

    @property
    def remembers_principals(self) -> bool:
        """Whether calls have a token, so that functions may ask for it."""
        return self.believes or self._server.settings.auth is not None

    @property
    def declared(self) -> dict[str, Any]:
        """Extensions, as clients are told of them."""
        return {extension.identifier: extension.settings() for extension in self.extensions}

    @property
    def icons(self) -> Any:
        """The server's, in wire names."""
        return wire(self._server.icons)
