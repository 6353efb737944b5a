"""``MCPServer``: functions in, a server out. The names, keywords and behaviours are the official SDK's.

Design constraint: the class has parts and delegates to them. The registry (:mod:`.core.registry`) holds the components,
:mod:`.core.core_binding` links them to the compiled part, :mod:`.core.local_calls` answers calls within the process,
:mod:`.core.client_notifier` sends the server's own notifications, and :mod:`.running.transports` serves it. Nothing of
the compiled part is loaded before the server is run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, Unpack, cast

from mcpace.server.auth.guards import guards, server_guards
from mcpace.server.auth.principal import TRUSTED
from mcpace.server.calls.context import Context, current
from mcpace.server.core import wire_settings
from mcpace.server.core.client_notifier import ClientNotifier
from mcpace.server.core.core_binding import CoreBinding
from mcpace.server.core.registry import Registry
from mcpace.server.errors import RegistrationError, ToolError, UnsupportedOption
from mcpace.server.registration.dependency_providers import Providers
from mcpace.server.registration.signature import name_of
from mcpace.server.registration.tools import Tool
from mcpace.server.running import log_setup
from mcpace.server.sdk_compat.shared_types import check_entry, check_middleware, prompt_keywords, tool_keywords
from mcpace.server.settings import FunctionT, HttpKeywords, LifespanT, LogLevel, Settings
from mcpace.types import CallToolResult, GetPromptResult, Icon, InputRequiredResult

if TYPE_CHECKING:
    from mcpace.server.auth.bearer_tokens import AuthSettings
    from mcpace.server.auth.guards import GuardOptions, Permission, RateLimit
    from mcpace.server.calls.context import ReadResourceContents
    from mcpace.server.core.local_calls import LocalCalls
    from mcpace.server.registration.path_security import ResourceSecurity
    from mcpace.server.registration.prompts import Prompt
    from mcpace.server.registration.tasks import TaskConfig
    from mcpace.server.registration.toon import OutputFormat
    from mcpace.server.running.prepared import Prepared
    from mcpace.types import Prompt as ListedPrompt
    from mcpace.types import Resource as ListedResource
    from mcpace.types import ResourceTemplate as ListedTemplate
    from mcpace.types import Tool as ListedTool

Lifespan = Callable[["MCPServer[LifespanT]"], AbstractAsyncContextManager[LifespanT]]


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
        """Creates a server. Options of the official SDK that mcpace doesn't have raise ``UnsupportedOption``.

        ``host``, ``port``, ``streamable_http_path``, ``stateless_http`` and the other keywords of mcp 1.x are defaults
        for ``run()`` and ``streamable_http_app()``.

        ``tool_timeout`` is the time limit in seconds of tools that have none of their own; there is none by default.
        ``permissions`` and ``rate_limits`` guard all tools, resources and prompts; such a limit counts all uses
        together. ``max_result_bytes`` is the bound of results that have none of their own. ``max_tasks`` is the number
        of tasks that are kept at a time, 10,000 by default; once half of them are taken, an authenticated caller may
        have at most a tenth. ``providers`` fill in parameters by name.

        ``limiter`` is the URL of a Redis in which all processes count rate limits together. ``on_store_down`` says
        whether calls are refused or counted in memory while Redis is unreachable, and ``store_prefix`` begins its keys.
        Servers of the same name and prefix count together, so a server with a limiter needs a name.
        """
        self._name = name or "mcp-server"
        self._title = title
        self._description = description
        self._instructions = instructions
        self._website_url = website_url
        self._icons = list(icons) if icons is not None else None
        self._version = version
        self._token_verifier = token_verifier
        self.tool_timeout = _checked_timeout(tool_timeout)
        unknown = sorted(http.keys() - HttpKeywords.__annotations__.keys())
        if unknown:
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {unknown[0]!r}")
        self.max_tasks = _checked_task_limit(max_tasks)
        self.settings = Settings(
            debug,
            log_level,
            warn_on_duplicate_resources,
            warn_on_duplicate_tools,
            warn_on_duplicate_prompts,
            dependencies or [],
            lifespan,
            _checked_auth(auth, token_verifier, auth_server_provider),
            **http,
        )
        self.dependencies = self.settings.dependencies
        self._resource_security = resource_security
        self._providers = Providers(providers)
        self._binding = CoreBinding(
            self,
            wire_settings.cache_hint(cache_hints),
            request_state_security,
            name,
            server_guards(permissions, rate_limits, max_result_bytes, self._name),
        )
        self._binding.share_limiter(limiter, on_store_down, store_prefix)
        self._notifier = ClientNotifier(self._binding, subscriptions)
        self._middleware = list(middleware or ())
        for one in self._middleware:
            check_middleware(one)
        self._routes: list[Any] = []
        self._application: Any = None
        self._connections: list[Any] = []
        self._lifespan_context: Any = {}
        self.registry = Registry(
            self._binding,
            {
                "tools": warn_on_duplicate_tools,
                "resources": warn_on_duplicate_resources,
                "prompts": warn_on_duplicate_prompts,
            },
        )
        log_setup.begin(_checked_level(log_level))
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

    # Description --------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name that clients see."""
        return self._name

    @property
    def title(self) -> str | None:
        """The name that people read."""
        return self._title

    @property
    def description(self) -> str | None:
        """A sentence about the server."""
        return self._description

    @property
    def instructions(self) -> str | None:
        """Instructions for the model that uses the server."""
        return self._instructions

    @property
    def website_url(self) -> str | None:
        """The page about the server."""
        return self._website_url

    @property
    def icons(self) -> list[Icon] | None:
        """The server's pictures."""
        return self._icons

    @property
    def version(self) -> str:
        """The server's own version."""
        return self._version

    @property
    def middleware(self) -> list[Any]:
        """The functions that wrap every request, outermost first: ``async (ctx, call_next)``. Fixed once the server
        runs."""
        return self._middleware

    @property
    def lifespan_context(self) -> LifespanT:
        """The value that the lifespan yielded; an empty dictionary without one."""
        return cast("LifespanT", self._lifespan_context)

    def get_context(self) -> Context[LifespanT, Any]:
        """The context of the current call, as in mcp 1.x. A parameter annotated ``Context`` is faster."""
        context = current.get()
        return context if context is not None and context.is_of(self) else Context(server=self)

    # Registration -----------------------------------------------------------------------------------------------------

    def tool(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Any = None,
        icons: Sequence[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        *,
        output_format: OutputFormat = "json",
        task: bool | TaskConfig | None = None,
        **guarding: Unpack[GuardOptions],
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function as a tool.

        Its parameters become the input schema, its return annotation the output schema. ``structured_output`` requires
        an output schema (``True``), forbids it (``False``), or leaves it to the annotation. The server fills in a
        parameter annotated ``Context``.

        ``permissions`` and ``rate_limits`` guard the tool in addition to the server's own; ``timeout`` is in seconds; a
        result longer than ``max_result_bytes`` is an error. ``output_format="toon"`` writes the text of data as TOON,
        ``"auto"`` only if that is shorter. ``task=True`` runs it as a task for clients that support tasks; see
        :class:`mcpace.TaskConfig`.
        """
        if callable(name):
            raise TypeError(
                "The @tool decorator was used incorrectly. Did you forget to call it? Use @tool() instead of @tool"
            )

        def register(fn: FunctionT) -> FunctionT:
            self.add_tool(
                fn,
                name,
                title,
                description,
                annotations,
                icons,
                meta,
                structured_output,
                output_format=output_format,
                task=task,
                **guarding,
            )
            return fn

        return register

    def add_tool(
        self,
        fn: Callable[..., Any] | Tool,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Any = None,
        icons: Sequence[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        *,
        output_format: OutputFormat = "json",
        task: bool | TaskConfig | None = None,
        **guarding: Unpack[GuardOptions],
    ) -> None:
        """Registers a function as a tool, without the decorator. Also while the server runs."""
        theirs = tool_keywords(fn)
        if isinstance(fn, Tool):
            tool = fn
        elif theirs is not None:
            theirs["fn"] = self._with_providers(theirs["fn"])
            tool = Tool.from_function(**theirs)
            if tool.parameters != fn.parameters:  # type: ignore[attr-defined]
                raise RegistrationError(
                    f"tool {tool.name!r} of {type(fn).__module__} has a schema that its function does not have: "
                    "register the function with mcpace's add_tool, and annotate its parameters"
                )
        else:
            what = f"tool {name or name_of(fn)!r}"
            tool = Tool.from_function(
                self._with_providers(fn),
                name=name,
                title=title,
                description=description,
                annotations=annotations,
                icons=icons,
                meta=meta,
                structured_output=structured_output,
                guards=guards(**guarding, what=what),
                output_format=output_format,
                task=task,
            )
        self.registry.add_tool(tool)

    def remove_tool(self, name: str) -> None:
        """Removes a tool, also while the server runs. Raises ``ToolError`` if there is none."""
        self.registry.remove_tool(name)

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
        **guarding: Unpack[GuardOptions],
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function as a resource, or as a resource template if the URI has variables (``note://{id}``).

        The function returns text, bytes, or a value that is sent as JSON. The variables are its parameters. The
        keywords for guards are those of :meth:`tool`.
        """
        if callable(uri):
            raise TypeError(
                "The @resource decorator was used incorrectly. "
                "Did you forget to call it? Use @resource('uri') instead of @resource"
            )
        from mcpace.server.registration.path_security import DEFAULT_RESOURCE_SECURITY
        from mcpace.server.registration.resources import FunctionResource, ResourceTemplate, check_static
        from mcpace.server.registration.uri_template import UriTemplate

        variables = UriTemplate.parse(uri).variable_names
        details: dict[str, Any] = {
            "name": name,
            "title": title,
            "description": description,
            "mime_type": mime_type,
            "icons": icons,
            "annotations": annotations,
            "meta": meta,
            "guards": guards(**guarding, what=f"resource {uri!r}"),
        }

        def register(fn: FunctionT) -> FunctionT:
            filled = self._with_providers(fn)
            if variables:
                policy = security or self._resource_security or DEFAULT_RESOURCE_SECURITY
                self.registry.add_template(ResourceTemplate.from_function(filled, uri, security=policy, **details))
            else:
                check_static(filled, uri)
                self.registry.add_resource(FunctionResource.from_function(filled, uri, **details))
            return fn

        return register

    def add_resource(self, resource: Any) -> None:
        """Registers a resource: a text, bytes, a file, or a class of your own. Also while the server runs."""
        self.registry.add_resource(resource)

    def remove_resource(self, uri: str) -> None:
        """Removes a resource or a template. Raises ``ValueError`` if there is none."""
        self.registry.remove_resource(uri)

    def prompt(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        **guarding: Unpack[GuardOptions],
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function as a prompt: the user fills in its parameters, and its value becomes the messages.

        The keywords for guards are those of :meth:`tool`.
        """
        if callable(name):
            raise TypeError(
                "The @prompt decorator was used incorrectly. "
                "Did you forget to call it? Use @prompt() instead of @prompt"
            )

        from mcpace.server.registration.prompts import Prompt

        def register(fn: FunctionT) -> FunctionT:
            own = guards(**guarding, what=f"prompt {name or name_of(fn)!r}")
            self.add_prompt(Prompt.from_function(self._with_providers(fn), name, title, description, icons, guards=own))
            return fn

        return register

    def add_prompt(self, prompt: Prompt) -> None:
        """Registers a prompt, also while the server runs."""
        from mcpace.server.registration.prompts import Prompt

        theirs = prompt_keywords(prompt)
        if theirs is not None:
            prompt = Prompt.from_function(self._with_providers(theirs.pop("fn")), **theirs)
        check_entry(prompt, Prompt, "add_prompt", "a Prompt, such as Prompt.from_function(function)")
        self.registry.add_prompt(prompt)

    def remove_prompt(self, name: str) -> None:
        """Removes a prompt, also while the server runs. Raises ``ValueError`` if there is none."""
        self.registry.remove_prompt(name)

    def completion(self) -> Callable[[FunctionT], FunctionT]:
        """Registers the function that proposes values of arguments: ``(ref, argument, context)`` → ``Completion``.

        ``ref`` is a ``PromptReference`` or ``ResourceTemplateReference``; ``None`` proposes nothing.
        """

        def register(fn: FunctionT) -> FunctionT:
            self.registry.set_completion(self._around(fn))
            return fn

        return register

    def _with_providers(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """The function that is called for an author's function, without the parameters that providers fill in."""
        return self._around(self._providers.applied(fn))

    def _around(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A hook for subclasses that wrap all functions. A wrapper keeps name, docstring and signature."""
        return fn

    # Calls within the process -----------------------------------------------------------------------------------------

    async def list_tools(self, *, principal: Any = TRUSTED) -> list[ListedTool]:
        """All tools, as clients see them; with a ``principal``, the tools that this caller may see."""
        return await self._local_calls.list_tools(principal)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
        *,
        principal: Any = TRUSTED,
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool in this process.

        A call without ``principal`` is the server's own: no permission, rate limit or bound applies. With a
        ``principal`` (an ``AccessToken``, or ``None`` for a caller without a token) that caller's guards apply.

        Raises ``ToolError`` if there is no such tool, the arguments don't fit, or the tool fails;
        ``UnexpectedToolError`` if it crashes. With ``principal``, all of these are ``ToolError``, and a refused caller
        is ``MCPError``.
        """
        if principal is TRUSTED:
            return await self._local_calls.call_trusted(name, arguments, context)
        result = await self.acall_tool(name, arguments, principal=principal)
        if isinstance(result, CallToolResult) and result.is_error:
            raise ToolError("\n".join(getattr(block, "text", "") for block in result.content))
        return result

    async def acall_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, principal: Any = None
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool in this process as this caller's client would: guards, validation and result are equal.

        ``principal`` is an ``AccessToken``; ``None`` is a caller without a token. The result has a tool's failure.
        Raises ``MCPError`` if there is no such tool, or the caller is refused.
        """
        return await self._local_calls.call_tool(name, arguments, principal)

    def call_tool_sync(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, principal: Any = None
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool as :meth:`acall_tool` does, but without an event loop, for scripts, views and tests.

        A plain function runs on the calling thread. Raises ``RuntimeError`` for a tool that needs an event loop if this
        thread runs one already.
        """
        return self._local_calls.call_tool_sync(name, arguments, principal)

    async def list_resources(self, *, principal: Any = TRUSTED) -> list[ListedResource]:
        """All resources, as clients see them; with a ``principal``, the resources that this caller may see."""
        return await self._local_calls.list_resources(principal)

    async def list_resource_templates(self, *, principal: Any = TRUSTED) -> list[ListedTemplate]:
        """All resource templates, as clients see them; with a ``principal``, those that this caller may see."""
        return await self._local_calls.list_resource_templates(principal)

    async def read_resource(
        self, uri: Any, context: Context[Any, Any] | None = None, *, principal: Any = TRUSTED
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Reads a resource in this process; ``principal`` is as in :meth:`call_tool`.

        Raises ``ResourceNotFoundError`` if there is none, ``ResourceError`` if reading fails,
        ``UnexpectedResourceError`` if it crashes, and ``MCPError`` if the caller is refused.
        """
        return await self._local_calls.read_resource(str(uri), context, principal)

    async def list_prompts(self, *, principal: Any = TRUSTED) -> list[ListedPrompt]:
        """All prompts, as clients see them; with a ``principal``, the prompts that this caller may see."""
        return await self._local_calls.list_prompts(principal)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
        *,
        principal: Any = TRUSTED,
    ) -> GetPromptResult | InputRequiredResult:
        """Renders a prompt in this process; ``principal`` is as in :meth:`call_tool`.

        Raises ``ValueError`` if there is none or rendering fails, and ``MCPError`` if the caller is refused.
        """
        return await self._local_calls.get_prompt(name, arguments, context, principal)

    @cached_property
    def _local_calls(self) -> LocalCalls:
        # Loaded with the first call within the process: it needs asyncio, and most servers have no such call.
        from mcpace.server.core.local_calls import LocalCalls

        return LocalCalls(self._binding)

    # Transports and notifications -------------------------------------------------------------------------------------

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
        """Serves over stdio, or over HTTP at ``host`` and ``port``, until a signal comes or stdin ends.

        The keywords are the official SDK's (``streamable_http_path``, ``json_response``, ``stateless_http``, …), and
        the runner's settings: ``store="redis://…"`` keeps sessions and streams where several processes find them. The
        constructor's values are the defaults.
        """
        from mcpace.server.running.transports import run

        run(self, transport, kwargs)

    async def run_stdio_async(self) -> None:
        """Serves over stdio, within a running event loop."""
        from mcpace.server.running.transports import run_async

        await run_async(self, "stdio", {})

    async def run_sse_async(self, **kwargs: Any) -> None:
        """Serves the HTTP+SSE transport of 2024-11-05, within a running event loop."""
        from mcpace.server.running.transports import run_async

        await run_async(self, "sse", kwargs)

    async def run_streamable_http_async(self, **kwargs: Any) -> None:
        """Serves over HTTP, within a running event loop."""
        from mcpace.server.running.transports import run_async

        await run_async(self, "streamable-http", kwargs)

    def asgi(self, **kwargs: Any) -> Any:
        """An ASGI application, to be mounted in another application or run by an ASGI server. Needs no package."""
        from mcpace.server.running.transports import asgi

        self._application = asgi(self, kwargs)
        return self._application

    def streamable_http_app(self, **kwargs: Any) -> Any:
        """A Starlette application, with the official SDK's keywords: the endpoint, custom routes and a ``lifespan``.

        Needs starlette: ``pip install 'mcpace[routes]'``.
        """
        from mcpace.server.running.transports import streamable_http_app

        self._application, application = streamable_http_app(self, kwargs)
        return application

    def sse_app(self, mount_path: str | None = None, **kwargs: Any) -> Any:
        """A Starlette application of the HTTP+SSE transport of 2024-11-05, with the official SDK's keywords."""
        from mcpace.server.running.transports import sse_app

        given = kwargs if mount_path is None else {**kwargs, "mount_path": mount_path}
        self._application, application = sse_app(self, given)
        return application

    @property
    def session_manager(self) -> Any:
        """Begins and ends the mounted application with its host: ``async with server.session_manager.run(): …``."""
        if self._application is None:
            raise RuntimeError("session_manager is of a mounted server: call streamable_http_app() or asgi() first")
        from mcpace.server.running.session_manager import SessionManager

        return SessionManager(self._application)

    def notify_list_changed(self, kind: Literal["tools", "resources", "prompts"]) -> Awaitable[None]:
        """Notifies clients that a list changed. Adding and removing components does so automatically."""
        return self._notifier.list_changed(kind)

    def notify_resource_updated(self, uri: str) -> Awaitable[None]:
        """Notifies the clients that subscribed to a resource that it changed."""
        return self._notifier.resource_updated(uri)

    async def notify(self, session_id: str, method: str, params: Any = None) -> None:
        """Sends the client of one session a notification that belongs to no request.

        With a store (``run(store="redis://…")``) any process can send it, whichever process has the client's stream.
        The message is in the store when this returns, and stays there for a client that reads nothing at the moment.
        Without a store, the session must belong to this process and its stream must be open. Raises ``LookupError``
        for an unknown session, and ``ConnectionError`` if its client can't be reached.
        """
        await self._notifier.notify(session_id, method, params)

    async def broadcast(self, method: str, params: Any = None) -> None:
        """Sends a notification to the clients of all sessions that read a stream; with a store, of every process.
        Raises ``ConnectionError`` if the other processes can't be reached."""
        await self._notifier.broadcast(method, params)

    # Connections of the official SDK's client ----------------------------------------------------------------------

    async def __aenter__(self) -> Any:
        """The streams of a connection in memory, for the official SDK's ``Client(server)``."""
        from mcpace.server.running.sdk_client_transport import connected

        connection = connected(self)
        streams = await connection.__aenter__()
        self._connections.append(connection)
        return streams

    async def __aexit__(self, *raised: Any) -> Any:
        """Ends the connection that was opened last."""
        return await self._connections.pop().__aexit__(*raised)

    if not TYPE_CHECKING:  # It would hide misspelled attributes from type checkers.

        def __getattr__(self, name: str) -> Any:
            if name == "_mcp_server":
                from mcpace.server.running.sdk_client_transport import LowLevel

                return LowLevel(self)
            from mcpace.server.sdk_compat.private_members import missing_member

            raise missing_member(self, name)

    # Internals ----------------------------------------------------------------------------------------------------

    def __mcpace__(self) -> Prepared:
        """The server, ready to be served. This is the runner's protocol for server objects."""
        from mcpace.server.running.prepared import Prepared
        from mcpace.server.running.transports import own_settings
        from mcpace.server.telemetry import observe

        registry = self.registry
        observe(self._binding.core, registry)
        return Prepared(
            core=self._binding.core,
            name=self._name,
            tools=len(registry.tools),
            resources=len(registry.resources) + len(registry.templates),
            prompts=len(registry.prompts),
            lifespan=self._enter_lifespan if self._has_lifespan else None,
            options=self._http_options(),
            settings=own_settings(self),
            loopback_only=getattr(self._token_verifier, "loopback_only", None),
        )

    @property
    def __mcpace_core__(self) -> CoreBinding:
        """The link to the compiled part: the internal interface for mcpace's own packages. It is not public API."""
        return self._binding

    @property
    def _has_lifespan(self) -> bool:
        return self.settings.lifespan is not None or self._notifier.bus is not None or bool(self._middleware)

    def _context(self, call: Any, method: str) -> Context[Any, Any]:
        """The context of a call, which is also the current one."""
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
    async def _enter_lifespan(self) -> AsyncIterator[Any]:
        """Runs the author's lifespan, the subscription to the bus and the list loop while the server runs."""
        unsubscribe = self._notifier.subscribe()
        list_loop = self._binding.list_loop
        if list_loop is not None:
            list_loop.open()
        try:
            if self.settings.lifespan is None:
                yield self._lifespan_context
                return
            async with self.settings.lifespan(self) as state:
                self._lifespan_context = state
                yield state
        finally:
            self._lifespan_context = {}
            if list_loop is not None:
                await list_loop.close()
            unsubscribe()

    def _add_extension(self, extension: Any) -> None:
        from mcpace.server.registration.extension import check

        check(extension, self._binding.extensions)
        self._binding.extensions.append(extension)
        for tool in extension.tools():
            self.add_tool(tool.fn, meta=tool.meta, **tool.kwargs)
        for resource in extension.resources():
            self.add_resource(resource.resource)


def _checked_timeout(seconds: float | None) -> float | None:
    if seconds is not None and not seconds > 0:
        raise ValueError(f"tool_timeout must be more than 0 seconds, got {seconds!r}")
    return seconds


def _checked_task_limit(tasks: int | None) -> int | None:
    if tasks is not None and not tasks >= 0:
        raise ValueError(f"max_tasks must not be negative, got {tasks!r}")
    return tasks


def _checked_auth(settings: Any, token_verifier: Any, auth_server_provider: Any) -> AuthSettings | None:
    if settings is None and token_verifier is None and auth_server_provider is None:
        return None
    from mcpace.server.auth.bearer_tokens import check

    return check(settings, token_verifier, auth_server_provider)


def _checked_level(level: LogLevel) -> LogLevel:
    if level not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
        raise UnsupportedOption(f"log_level {level!r}: there are DEBUG, INFO, WARNING, ERROR and CRITICAL")
    return level
