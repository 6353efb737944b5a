"""The link between one server and the compiled part: its registry there, and how calls reach Python.

Design constraint: ``MCPServer`` keeps all of this behind one member, so that its public face is the official SDK's.
``mcpace.django``, ``mcpace.fastmcp``, ``mcpace.client`` and ``mcpace.testing`` reach it by ``server.__mcpace_core__``
and touch no other internal of a server. The key that signs state is derived each time that it is needed, and never
kept.
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
    from mcpace.server.core.exchange_loop import ExchangeLoop
    from mcpace.server.core.registry import Registry


class CoreBinding:
    """The link between one server and the compiled part."""

    def __init__(
        self,
        server: MCPServer[Any],
        cache: wire_settings.CacheHint,
        state_security: Any,
        given_name: str | None,
        guards: Guards,
    ) -> None:
        self.server = server
        self.cache = cache
        """How long clients may keep the results that they read."""
        self.guards = guards
        """Guards of every tool, resource and prompt of the server."""
        self.extensions: list[Any] = []
        self.list_loop: ExchangeLoop | None = None
        """Answers requests for lists on the event loop; only with middleware, which may change lists."""
        self.started: _core.Server | None = None
        """The compiled part's registry; ``None`` until the server is first used."""
        self._state_security = state_security
        self._given_name = given_name
        self._limiter: _core.Limiter | None = None
        self._shared_limiter: tuple[str, str, str] | None = None
        self._trusts_local_principals = False
        # An unusable key is refused when the server is made, not when it is run.
        self.state_key()

    @property
    def registry(self) -> Registry:
        """The tools, resources and prompts of the server."""
        return self.server.registry

    @property
    def core(self) -> _core.Server:
        """The compiled part's registry of this server. The first access creates and fills it."""
        if self.started is None:
            for middleware in self.server.middleware:
                check_middleware(middleware)
            core = self._new_core()
            self.registry.bind(core)
            if self.server.middleware:
                from mcpace.server.core.list_requests import METHODS, list_loop

                self.list_loop = list_loop(self)
                core.delegate(self.list_loop.submit, METHODS)
            self.started = core
        return self.started

    @property
    def trusted_core(self) -> _core.Server:
        """The compiled part's registry, for callers in this process, whose ``principal`` is taken at its word."""
        self.trust_local_principals()
        return self.core

    def trust_local_principals(self) -> None:
        """Takes callers in this process at their word. Call this before the compiled part's registry is created:
        handlers are registered with or without principals."""
        self._trusts_local_principals = True

    def forget_core(self) -> None:
        """Drops the compiled part's registry, whose threads do not survive a fork."""
        self.started = None

    def _new_core(self) -> _core.Server:
        from mcpace import _core

        server = self.server
        options: dict[str, Any] = {
            "title": server.title,
            "description": server.description,
            "instructions": server.instructions,
            "website_url": server.website_url,
            "icons": None if server.icons is None else to_json(wire(server.icons)),
            "ttl_ms": self.cache.ttl_ms or None,
            "cache_scope": self.cache.scope if self.cache.scope != "private" else None,
            "key": self.state_key(),
            "extensions": to_json(self.declared_extensions) if self.extensions else None,
            "open": True,
            "limiter": self._connected_limiter(),
            "max_tasks": server.max_tasks,
        }
        given = {name: value for name, value in options.items() if value is not None}
        return _core.Server(server.name, server.version, **given)

    def state_key(self) -> bytes | None:
        """The key that signs the state of rounds of questions; ``None`` lets the compiled part choose a random one."""
        return wire_settings.state_key(self._state_security, self._given_name)

    # Rate limits --------------------------------------------------------------------------------------------------

    def use_limiter(self, limiter: _core.Limiter) -> None:
        """Counts uses with ``limiter``. Raises ``RuntimeError`` once the compiled part counts with another one."""
        if self.started is not None:
            raise RuntimeError(
                "the rate limits of this server are already counted: set a limiter, or freeze their clock, before its "
                "first call"
            )
        self._limiter = limiter

    def share_limiter(self, url: str | None, on_store_down: str, prefix: str) -> None:
        """Counts uses in the Redis at ``url``, for all processes together. The connection is opened on first use."""
        if on_store_down not in ("refuse", "memory"):
            raise ValueError(f"on_store_down takes 'refuse' or 'memory', not {on_store_down!r}")
        if url is not None and not self._given_name:
            raise ValueError(
                "a server with a limiter needs a name, by which servers that count in one Redis are told apart: "
                'MCPServer("my-service", ...)'
            )
        self._shared_limiter = None if url is None else (url, on_store_down, prefix)

    def _connected_limiter(self) -> _core.Limiter | None:
        """The limiter that counts uses; ``None`` for the compiled part's own."""
        if self._limiter is not None or self._shared_limiter is None:
            return self._limiter
        from mcpace import _core

        url, on_store_down, prefix = self._shared_limiter
        return _core.redis_limiter(url, on_store_down=on_store_down, prefix=prefix)

    # Calls --------------------------------------------------------------------------------------------------------

    def guards_of(self, entry: Any) -> Guards:
        """All guards of an entry: its own, and the server's."""
        own = guards_of(entry)
        return own.within(self.guards) if self.guards else own

    def is_wrapped(self, method: str) -> bool:
        """Whether the author's middleware or extensions wrap requests of a method."""
        return bool(self.server.middleware) or (method == "tools/call" and bool(self.interceptors))

    def context_factory(self, method: str) -> Callable[[Any], Context[Any, Any]]:
        """The function that makes a call's context. It runs among the call's own context variables."""
        make = self.server._context
        if not self.has_principals:
            return lambda call: make(call, method)

        def with_principal(call: Any) -> Context[Any, Any]:
            remember(call.principal)
            return make(call, method)

        return with_principal

    @property
    def has_principals(self) -> bool:
        """Whether calls may have a token, which functions find with ``get_access_token``."""
        return self._trusts_local_principals or self.server.settings.auth is not None

    @property
    def interceptors(self) -> Sequence[Any]:
        """The extensions with a hook around tool calls, outermost first."""
        if not self.extensions:
            return ()
        from mcpace.server.registration.extension import intercepts

        return [extension for extension in self.extensions if intercepts(extension)]

    @property
    def declared_extensions(self) -> dict[str, Any]:
        """The extensions' identifiers and settings, as the server declares them to clients."""
        return {extension.identifier: extension.settings() for extension in self.extensions}
