"""``MCPServer``: functions in, a server out. The names, keywords and behaviours are the official SDK's.

Design constraint: only the surface. What a definition is, how it is called and how it is served is elsewhere; nothing
of the compiled part is loaded before the server is run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from typing_extensions import TypeVar as DefaultTypeVar

from mcpace.server import hints, logs
from mcpace.server.context import Context, ReadResourceContents
from mcpace.server.errors import ToolError, UnsupportedOption, is_protocol_error
from mcpace.server.inside import Inside
from mcpace.server.registry import Registry
from mcpace.server.tools import Tool
from mcpace.types import CallToolResult, GetPromptResult, Icon, InputRequiredResult, PromptMessage
from mcpace.types import Prompt as ListedPrompt
from mcpace.types import Resource as ListedResource
from mcpace.types import ResourceTemplate as ListedTemplate
from mcpace.types import Tool as ListedTool

if TYPE_CHECKING:
    from mcpace.server.auth import AuthSettings
    from mcpace.server.prompts import Prompt
    from mcpace.server.running.prepared import Prepared
    from mcpace.server.security import ResourceSecurity

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
LifespanT = DefaultTypeVar("LifespanT", default=Any)
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
Lifespan = Callable[["MCPServer[LifespanT]"], AbstractAsyncContextManager[LifespanT]]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a server was made with."""

    debug: bool
    log_level: LogLevel
    warn_on_duplicate_resources: bool
    warn_on_duplicate_tools: bool
    warn_on_duplicate_prompts: bool
    dependencies: list[str]
    lifespan: Any
    auth: AuthSettings | None


class MCPServer(Generic[LifespanT]):
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
    ) -> None:
        """A server. Options of the official SDK that mcpace doesn't have raise ``UnsupportedOption``.

        ``tool_timeout``: how many seconds a tool may take, where it doesn't say so itself; without limit if not given.
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
        self.settings = Settings(
            debug,
            log_level,
            warn_on_duplicate_resources,
            warn_on_duplicate_tools,
            warn_on_duplicate_prompts,
            dependencies or [],
            lifespan,
            _auth(auth, token_verifier, auth_server_provider),
        )
        self.dependencies = self.settings.dependencies
        self._resource_security = resource_security
        self._inside = Inside(self, hints.cache_hint(cache_hints), request_state_security, name)
        self._bus = _bus(subscriptions)
        self._middleware = list(middleware or ())
        self._routes: list[Any] = []
        self._application: Any = None
        self._lifespan_context: Any = {}
        self.registry = Registry(
            self,
            {
                "tools": warn_on_duplicate_tools,
                "resources": warn_on_duplicate_resources,
                "prompts": warn_on_duplicate_prompts,
            },
        )
        logs.begin(_level(log_level))
        for tool in tools or ():
            self.registry.add_tool(tool)
        for resource in resources or ():
            self.registry.add_resource(resource)
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

    # Tools -------------------------------------------------------------------------------------------------------

    def tool(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Any = None,
        icons: Sequence[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function as a tool.

        Its parameters become the input schema, its return annotation the output schema. ``structured_output``: must
        have one (``True``), must not (``False``), or as the annotation allows. A parameter annotated ``Context`` is
        filled in by the server.
        """
        if callable(name):
            raise TypeError(
                "The @tool decorator was used incorrectly. Did you forget to call it? Use @tool() instead of @tool"
            )

        def register(fn: FunctionT) -> FunctionT:
            self.add_tool(fn, name, title, description, annotations, icons, meta, structured_output)
            return fn

        return register

    def add_tool(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Any = None,
        icons: Sequence[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
    ) -> None:
        """Registers a function as a tool, without the decorator. Also while the server runs."""
        tool = (
            fn
            if isinstance(fn, Tool)
            else Tool.from_function(
                fn,
                name=name,
                title=title,
                description=description,
                annotations=annotations,
                icons=icons,
                meta=meta,
                structured_output=structured_output,
            )
        )
        self.registry.add_tool(tool)

    def remove_tool(self, name: str) -> None:
        """Takes a tool away, also while the server runs. Raises ``ToolError`` where there is none."""
        self.registry.remove_tool(name)

    async def list_tools(self) -> list[ListedTool]:
        """All tools, as clients are told."""
        return [ListedTool.model_validate(tool.listed()) for tool in self.registry.tools.values()]

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool in this process, as a client would.

        Raises ``ToolError`` where there is none, the arguments don't fit, or it fails; ``UnexpectedToolError`` where
        it crashes.
        """
        tool = self.registry.tools.get(name)
        if tool is None:
            raise ToolError(f"Unknown tool: {name}")
        result = await tool.run(arguments or {}, context or Context(server=self), convert_result=True)
        return cast("CallToolResult | InputRequiredResult", result)

    # Resources ---------------------------------------------------------------------------------------------------

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: Sequence[Icon] | None = None,
        annotations: Any = None,
        meta: dict[str, Any] | None = None,
        security: ResourceSecurity | None = None,
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function as a resource, or as a family of them where the URI has variables (``note://{id}``).

        It returns text, bytes, or what is told as JSON. The variables are its parameters.
        """
        if callable(uri):
            raise TypeError(
                "The @resource decorator was used incorrectly. "
                "Did you forget to call it? Use @resource('uri') instead of @resource"
            )
        from mcpace.server.resources import FunctionResource, ResourceTemplate, check_static
        from mcpace.server.security import DEFAULT_RESOURCE_SECURITY
        from mcpace.server.uri_template import UriTemplate

        variables = UriTemplate.parse(uri).variable_names
        details: dict[str, Any] = {
            "name": name,
            "title": title,
            "description": description,
            "mime_type": mime_type,
            "icons": icons,
            "annotations": annotations,
            "meta": meta,
        }

        def register(fn: FunctionT) -> FunctionT:
            if variables:
                policy = security or self._resource_security or DEFAULT_RESOURCE_SECURITY
                self.registry.add_template(ResourceTemplate.from_function(fn, uri, security=policy, **details))
            else:
                check_static(fn, uri)
                self.registry.add_resource(FunctionResource.from_function(fn, uri, **details))
            return fn

        return register

    def add_resource(self, resource: Any) -> None:
        """Registers a resource: a text, bytes, a file, or a class of your own. Also while the server runs."""
        self.registry.add_resource(resource)

    def remove_resource(self, uri: str) -> None:
        """Takes a resource or a template away. Raises ``ValueError`` where there is none."""
        self.registry.remove_resource(uri)

    async def list_resources(self) -> list[ListedResource]:
        """All resources, as clients are told."""
        from mcpace.server.resources import listed_resource

        return [ListedResource.model_validate(listed_resource(one)) for one in self.registry.resources.values()]

    async def list_resource_templates(self) -> list[ListedTemplate]:
        """All families of resources, as clients are told."""
        return [ListedTemplate.model_validate(one.listed()) for one in self.registry.templates.values()]

    async def read_resource(
        self, uri: Any, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Reads a resource in this process.

        Raises ``ResourceNotFoundError`` where there is none, ``ResourceError`` where reading fails,
        ``UnexpectedResourceError`` where it crashes.
        """
        from mcpace.server import serving

        read = await serving.read(self, str(uri), context or Context(server=self))
        return cast("Iterable[ReadResourceContents] | InputRequiredResult", read)

    # Prompts and completion --------------------------------------------------------------------------------------

    def prompt(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function as a prompt: its parameters are what the user fills in, its value the messages."""
        if callable(name):
            raise TypeError(
                "The @prompt decorator was used incorrectly. "
                "Did you forget to call it? Use @prompt() instead of @prompt"
            )

        from mcpace.server.prompts import Prompt

        def register(fn: FunctionT) -> FunctionT:
            self.add_prompt(Prompt.from_function(fn, name, title, description, icons))
            return fn

        return register

    def add_prompt(self, prompt: Prompt) -> None:
        """Registers a prompt, also while the server runs."""
        self.registry.add_prompt(prompt)

    def remove_prompt(self, name: str) -> None:
        """Takes a prompt away, also while the server runs. Raises ``ValueError`` where there is none."""
        self.registry.remove_prompt(name)

    async def list_prompts(self) -> list[ListedPrompt]:
        """All prompts, as clients are told."""
        return [ListedPrompt.model_validate(prompt.listed()) for prompt in self.registry.prompts.values()]

    async def get_prompt(
        self, name: str, arguments: Mapping[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Fills a prompt in, in this process. Raises ``ValueError`` where there is none, or it fails."""
        prompt = self.registry.prompts.get(name)
        if prompt is None:
            raise ValueError(f"Unknown prompt: {name}")
        try:
            rendered = await prompt.render(arguments, context or Context(server=self))
        except Exception as error:
            if is_protocol_error(error):
                raise
            raise ValueError(str(error)) from error
        if isinstance(rendered, InputRequiredResult):
            return rendered
        messages = [PromptMessage(role=one.role, content=one.content) for one in rendered]
        return GetPromptResult(description=prompt.description, messages=messages)

    def completion(self) -> Callable[[FunctionT], FunctionT]:
        """Registers the function that proposes values of arguments: ``(ref, argument, context)`` → ``Completion``.

        ``ref`` is a ``PromptReference`` or ``ResourceTemplateReference``; ``None`` proposes nothing.
        """

        def register(fn: FunctionT) -> FunctionT:
            self.registry.set_completion(fn)
            return fn

        return register

    # Other HTTP, and running -------------------------------------------------------------------------------------

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

        run(self, transport, kwargs)

    async def run_stdio_async(self) -> None:
        """Serves over stdio, within a running event loop."""
        from mcpace.server.launch import run_async

        await run_async(self, "stdio", {})

    async def run_sse_async(self, **kwargs: Any) -> None:
        """Serves the HTTP+SSE transport of 2024-11-05, within a running event loop."""
        from mcpace.server.launch import run_async

        await run_async(self, "sse", kwargs)

    async def run_streamable_http_async(self, **kwargs: Any) -> None:
        """Serves over HTTP, within a running event loop."""
        from mcpace.server.launch import run_async

        await run_async(self, "streamable-http", kwargs)

    def asgi(self, **kwargs: Any) -> Any:
        """An ASGI application, to be mounted in another one or run by its server."""
        from mcpace.server.launch import asgi

        self._application = asgi(self, "streamable-http", kwargs)
        return self._application

    def streamable_http_app(self, **kwargs: Any) -> Any:
        """An ASGI application, with the official SDK's keywords."""
        return self.asgi(**kwargs)

    def sse_app(self, **kwargs: Any) -> Any:
        """An ASGI application of the HTTP+SSE transport, with the official SDK's keywords."""
        from mcpace.server.launch import asgi

        self._application = asgi(self, "sse", kwargs)
        return self._application

    @property
    def session_manager(self) -> Any:
        """Begins and ends the mounted application with its host: ``async with server.session_manager.run(): …``."""
        if self._application is None:
            raise RuntimeError("session_manager is of a mounted server: call streamable_http_app() or asgi() first")
        from mcpace.server.mounting import SessionManager

        return SessionManager(self._application)

    # Changes -----------------------------------------------------------------------------------------------------

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

    # For the runner ----------------------------------------------------------------------------------------------

    def __mcpace__(self) -> Prepared:
        """All that is registered, ready to be served."""
        from mcpace.server.running.prepared import Prepared

        registry = self.registry
        return Prepared(
            core=self._inside.core,
            name=self._name,
            tools=len(registry.tools),
            resources=len(registry.resources) + len(registry.templates),
            prompts=len(registry.prompts),
            lifespan=self._entered if self._has_life else None,
            options=self._http_options(),
        )

    @property
    def _has_life(self) -> bool:
        return self.settings.lifespan is not None or self._bus is not None or bool(self._middleware)

    def _context(self, call: Any, method: str) -> Context[Any, Any]:
        """A call's context."""
        return Context(call=call, server=self, method=method)

    def _http_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.settings.auth is not None:
            from mcpace.server.auth import http_options

            options |= http_options(self.settings.auth, self._token_verifier)
        if self._routes:
            from mcpace.server.routes import application

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
        from mcpace.server.extension import check

        check(extension, self._inside.extensions)
        self._inside.extensions.append(extension)
        for tool in extension.tools():
            self.add_tool(tool.fn, meta=tool.meta, **tool.kwargs)
        for resource in extension.resources():
            self.add_resource(resource.resource)


class _Done:
    """Already done, and may be awaited all the same."""

    def __await__(self) -> Any:
        return iter(())


def require_client_extension(ctx: Any, identifier: str) -> None:
    """Raises the protocol's error where the client of a call (a ``RequestContext``) did not declare an extension."""
    from mcpace.server.errors import MCPError
    from mcpace.types import MISSING_REQUIRED_CLIENT_CAPABILITY

    capabilities = ctx.session.client_capabilities
    if identifier not in ((capabilities.extensions if capabilities else None) or {}):
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"Client did not declare required extension {identifier!r}",
            {"requiredCapabilities": {"extensions": {identifier: {}}}},
        )


def _limit(seconds: float | None) -> float | None:
    if seconds is not None and not seconds > 0:
        raise ValueError(f"tool_timeout must be more than 0 seconds, got {seconds!r}")
    return seconds


def _bus(given: Any) -> Any:
    if given is None:
        return None
    from mcpace.server.subscriptions import checked

    return checked(given)


def _auth(settings: Any, token_verifier: Any, auth_server_provider: Any) -> AuthSettings | None:
    if settings is None and token_verifier is None and auth_server_provider is None:
        return None
    from mcpace.server.auth import check

    return check(settings, token_verifier, auth_server_provider)


def _level(level: LogLevel) -> LogLevel:
    if level not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
        raise UnsupportedOption(f"log_level {level!r}: there are DEBUG, INFO, WARNING, ERROR and CRITICAL")
    return level
