"""``MCPServer``: functions in, a server out. The names, keywords and behaviours are the official SDK's.

Design constraint: only how it is made and what it is. Its methods are on its sides (:mod:`.registering`,
:mod:`.answering`, :mod:`.hosting`); nothing of the compiled part is loaded before the server is run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from mcpace.server.answering import Answering
from mcpace.server.auth.guards import of_server
from mcpace.server.calls.context import Context, current
from mcpace.server.core import wire_settings
from mcpace.server.core.core_binding import Inside
from mcpace.server.core.registry import Registry
from mcpace.server.errors import UnsupportedOption
from mcpace.server.hosting import Hosting
from mcpace.server.registering import Registering
from mcpace.server.registration.dependency_providers import Providers
from mcpace.server.registration.tools import Tool
from mcpace.server.running import log_setup
from mcpace.server.sdk_compat.shared_types import check_entry, check_middleware, tool_keywords
from mcpace.server.settings import HttpKeywords, LifespanT, LogLevel, Settings
from mcpace.types import Icon

if TYPE_CHECKING:
    from mcpace.server.auth.bearer_tokens import AuthSettings
    from mcpace.server.auth.guards import Permission, RateLimit
    from mcpace.server.registration.path_security import ResourceSecurity
    from mcpace.server.running.prepared import Prepared

Lifespan = Callable[["MCPServer[LifespanT]"], AbstractAsyncContextManager[LifespanT]]


class MCPServer(Registering[LifespanT], Answering[LifespanT], Hosting[LifespanT]):
    """A server of tools, resources and prompts::

    from mcpace import MCPServer

    server = MCPServer("calculator")

    @server.tool()
    def add(a: int, b: int) -> int:
        "Adds two numbers."
        return a + b

    if __name__ == "__main__":
        server.run()
    """

    def __init__(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] | None = None,
        version: str = "",
        auth_server_provider: Any = None,
        token_verifier: Any = None,
        *,
        tools: Iterable[Tool] | None = None,
        resources: Iterable[Any] | None = None,
        extensions: Sequence[Any] | None = None,
        debug: bool = False,
        log_level: LogLevel = "INFO",
        warn_on_duplicate_resources: bool = True,
        warn_on_duplicate_tools: bool = True,
        warn_on_duplicate_prompts: bool = True,
        dependencies: list[str] | None = None,
        lifespan: Lifespan[LifespanT] | None = None,
        auth: Any = None,
        resource_security: ResourceSecurity | None = None,
        request_state_security: Any = None,
        cache_hints: Mapping[Any, Any] | None = None,
        subscriptions: Any = None,
        middleware: Sequence[Any] | None = None,
        tool_timeout: float | None = None,
        permissions: Sequence[Permission] | Permission = (),
        rate_limits: Sequence[RateLimit | str] | RateLimit | str = (),
        max_result_bytes: int | None = None,
        max_tasks: int | None = None,
        providers: Mapping[str, Callable[..., Any]] | None = None,
        limiter: str | None = None,
        on_store_down: Literal["refuse", "memory"] = "refuse",
        store_prefix: str = "mcpace:",
        **http: Unpack[HttpKeywords],
    ) -> None:
        """A server. Options of the official SDK that mcpace doesn't have raise ``UnsupportedOption``.

        ``host``, ``port``, ``streamable_http_path``, ``stateless_http`` and the other keywords of mcp 1.x hold where
        ``run()`` or ``streamable_http_app()`` is not given its own.

        ``tool_timeout``: how many seconds a tool may take, where it doesn't say so itself; without limit if not given.
        ``permissions`` and ``rate_limits`` guard all tools, resources and prompts; such a limit counts all of them
        together. ``max_result_bytes``: of what says nothing itself. ``max_tasks``: how many tasks are kept at a time,
        10,000 if not given; once half of them are taken, an authenticated caller may have no more than a tenth.
        ``providers`` fill in parameters by name.
        ``limiter``: the URL of a Redis by which rate limits hold over all processes, what to do while that is away, and
        what its keys begin with. Servers of one name and prefix count together, so such a server has a name.
        """
        self._name = name or "mcp-server"
        self._title = title
        self._description = description
        self._instructions = instructions
        self._website_url = website_url
        self._icons = list(icons) if icons is not None else None
        self._version = version
        self._token_verifier = token_verifier
        self.tool_timeout = _limit(tool_timeout)
        unknown = sorted(http.keys() - HttpKeywords.__annotations__.keys())
        if unknown:
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {unknown[0]!r}")
        self.max_tasks = _count(max_tasks)
        self.settings = Settings(
            debug,
            log_level,
            warn_on_duplicate_resources,
            warn_on_duplicate_tools,
            warn_on_duplicate_prompts,
            dependencies or [],
            lifespan,
            _auth(auth, token_verifier, auth_server_provider),
            **http,
        )
        self.dependencies = self.settings.dependencies
        self._resource_security = resource_security
        self._inside = Inside(
            self,
            wire_settings.cache_hint(cache_hints),
            request_state_security,
            name,
            of_server(permissions, rate_limits, max_result_bytes, self._name),
            Providers(providers),
        )
        self._inside.count_over_all(limiter, on_store_down, store_prefix)
        self._bus = _bus(subscriptions)
        self._middleware = list(middleware or ())
        for one in self._middleware:
            check_middleware(one)
        self._routes: list[Any] = []
        self._application: Any = None
        self._connections: list[Any] = []
        self._lifespan_context: Any = {}
        self.registry = Registry(
            self,
            {
                "tools": warn_on_duplicate_tools,
                "resources": warn_on_duplicate_resources,
                "prompts": warn_on_duplicate_prompts,
            },
        )
        log_setup.begin(_level(log_level))
        for tool in tools or ():
            if tool_keywords(tool) is None:
                check_entry(tool, Tool, "tools=", "Tools, such as Tool.from_function(function)")
            self.add_tool(tool)
        for resource in resources or ():
            self.add_resource(resource)
        for extension in extensions or ():
            self._add_extension(extension)

    def __repr__(self) -> str:
        return f"MCPServer({self._name!r})"

    # What it is --------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name that clients are told."""
        return self._name

    @property
    def title(self) -> str | None:
        """The name for people."""
        return self._title

    @property
    def description(self) -> str | None:
        """What the server is."""
        return self._description

    @property
    def instructions(self) -> str | None:
        """How to use it, for a model."""
        return self._instructions

    @property
    def website_url(self) -> str | None:
        """Where people read on."""
        return self._website_url

    @property
    def icons(self) -> list[Icon] | None:
        """Pictures of the server."""
        return self._icons

    @property
    def version(self) -> str:
        """The server's own version."""
        return self._version

    @property
    def middleware(self) -> list[Any]:
        """What wraps every request, outermost first: ``async (ctx, call_next)``. Fixed once the server runs."""
        return self._middleware

    @property
    def lifespan_context(self) -> LifespanT:
        """What the lifespan yielded; an empty dictionary without one."""
        return cast("LifespanT", self._lifespan_context)

    def get_context(self) -> Context[LifespanT, Any]:
        """The context of the current call, as mcp 1.x has it. A parameter annotated ``Context`` is the quicker way."""
        context = current.get()
        return context if context is not None and context.is_of(self) else Context(server=self)

    # A transport of the official SDK's client --------------------------------------------------------------------

    async def __aenter__(self) -> Any:
        """For the official SDK's ``Client(server)``: the streams of a connection in memory."""
        from mcpace.server.running.sdk_client_transport import connected

        connection = connected(self)
        streams = await connection.__aenter__()
        self._connections.append(connection)
        return streams

    async def __aexit__(self, *raised: Any) -> Any:
        """Ends the connection that began last."""
        return await self._connections.pop().__aexit__(*raised)

    if not TYPE_CHECKING:  # It would hide misspelled attributes from type checkers.

        def __getattr__(self, name: str) -> Any:
            if name == "_mcp_server":
                from mcpace.server.running.sdk_client_transport import LowLevel

                return LowLevel(self)
            from mcpace.server.sdk_compat.private_members import missing_member

            raise missing_member(self, name)

    # For the runner ----------------------------------------------------------------------------------------------

    def __mcpace__(self) -> Prepared:
        """All that is registered, ready to be served."""
        from mcpace.server.running.prepared import Prepared
        from mcpace.server.running.transports import own_settings
        from mcpace.server.telemetry import observe

        registry = self.registry
        observe(self._inside.core, registry)
        return Prepared(
            core=self._inside.core,
            name=self._name,
            tools=len(registry.tools),
            resources=len(registry.resources) + len(registry.templates),
            prompts=len(registry.prompts),
            lifespan=self._entered if self._has_life else None,
            options=self._http_options(),
            settings=own_settings(self),
            loopback_only=getattr(self._token_verifier, "loopback_only", None),
        )

    @property
    def _has_life(self) -> bool:
        return self.settings.lifespan is not None or self._bus is not None or bool(self._middleware)

    def _context(self, call: Any, method: str) -> Context[Any, Any]:
        """A call's context."""
        context: Context[Any, Any] = Context(call=call, server=self, method=method)
        current.set(context)
        return context

    def _http_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.settings.auth is not None:
            from mcpace.server.auth.bearer_tokens import http_options

            options |= http_options(self.settings.auth, self._token_verifier)
        if self._routes:
            from mcpace.server.running.custom_routes import application

            options["asgi"] = application(self._routes, self.settings.debug)
        return options

    @asynccontextmanager
    async def _entered(self) -> AsyncIterator[Any]:
        """The author's lifespan, and the bus, for as long as the server runs."""
        unsubscribe = self._bus.subscribe(self._tell) if self._bus is not None else None
        desk = self._inside.desk
        if desk is not None:
            desk.open()
        try:
            if self.settings.lifespan is None:
                yield self._lifespan_context
                return
            async with self.settings.lifespan(self) as state:
                self._lifespan_context = state
                yield state
        finally:
            self._lifespan_context = {}
            if desk is not None:
                await desk.close()
            if unsubscribe is not None:
                unsubscribe()

    def _add_extension(self, extension: Any) -> None:
        from mcpace.server.registration.extension import check

        check(extension, self._inside.extensions)
        self._inside.extensions.append(extension)
        for tool in extension.tools():
            self.add_tool(tool.fn, meta=tool.meta, **tool.kwargs)
        for resource in extension.resources():
            self.add_resource(resource.resource)


def _limit(seconds: float | None) -> float | None:
    if seconds is not None and not seconds > 0:
        raise ValueError(f"tool_timeout must be more than 0 seconds, got {seconds!r}")
    return seconds


def _count(tasks: int | None) -> int | None:
    if tasks is not None and not tasks >= 0:
        raise ValueError(f"max_tasks must not be negative, got {tasks!r}")
    return tasks


def _bus(given: Any) -> Any:
    if given is None:
        return None
    from mcpace.server.core.subscriptions import checked

    return checked(given)


def _auth(settings: Any, token_verifier: Any, auth_server_provider: Any) -> AuthSettings | None:
    if settings is None and token_verifier is None and auth_server_provider is None:
        return None
    from mcpace.server.auth.bearer_tokens import check

    return check(settings, token_verifier, auth_server_provider)


def _level(level: LogLevel) -> LogLevel:
    if level not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
        raise UnsupportedOption(f"log_level {level!r}: there are DEBUG, INFO, WARNING, ERROR and CRITICAL")
    return level
