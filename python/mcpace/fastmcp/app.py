"""``FastMCP``, a server of functions with FastMCP's names, keywords and behaviours.

Design constraint: the class is an interface to :class:`mcpace.MCPServer`. An option of FastMCP that the runtime lacks
is refused by its name.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from mcpace.fastmcp.components import KINDS, Kind, Visibility, key_of, move_component
from mcpace.fastmcp.context import Context, States, current
from mcpace.fastmcp.errors import NotFoundError, PromptError
from mcpace.fastmcp.middleware import Adapted, catch_tool_errors
from mcpace.fastmcp.prompts import FunctionPrompt, PromptResult
from mcpace.fastmcp.resources import (
    ForeignResource,
    FunctionResource,
    FunctionTemplate,
    ResourceContent,
    ResourceResult,
    rfc6570_template,
)
from mcpace.fastmcp.tools import UNSET, FunctionTool, ToolResult, Unset
from mcpace.server.app import MCPServer
from mcpace.server.auth.principal import TRUSTED
from mcpace.server.core.wire_settings import CACHEABLE, CacheableMethod, CacheHint
from mcpace.server.errors import (
    MCPError,
    RegistrationError,
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnsupportedOption,
    logger,
)
from mcpace.server.registration import resources as plain
from mcpace.server.registration.extension import Extension
from mcpace.server.registration.path_security import DEFAULT_RESOURCE_SECURITY, ResourceSecurity
from mcpace.server.registration.prompts import Prompt
from mcpace.server.registration.resources import check_uri
from mcpace.server.registration.tools import Tool
from mcpace.server.registration.uri_template import UriTemplate
from mcpace.types import Annotations, InputRequiredResult

if TYPE_CHECKING:
    from mcpace.server.auth.bearer_tokens import AuthSettings

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
Duplicates = Literal["warn", "error", "replace", "ignore"]

_ADOPTED = "make the server with FastMCP itself, and serve it as it is: mcpace serve FILE.py:OBJECT"
_INSTEAD = {
    "providers": "register what they provide, or mount() a server",
    "transforms": "give names and descriptions where tools are registered",
    "list_page_size": "the runtime's pages hold 1,000 entries",
    "session_state_store": "state is kept in this process",
    "request_state_security": "the runtime seals requestState with a key of its own",
    "client_log_level": "clients set the level themselves",
    "experimental_capabilities": "there are none",
}


def _unsupported_method(name: str, instead: str) -> Any:
    """A method of FastMCP that mcpace lacks: it raises an error which names the alternative."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise UnsupportedOption(f"FastMCP.{name}(): {instead}")

    return staticmethod(refuse)


class FastMCP(MCPServer[Any]):
    """A server of tools, resources and prompts::

    from mcpace.fastmcp import FastMCP

    mcp = FastMCP("calculator")

    @mcp.tool
    def add(a: int, b: int) -> int:
        "Adds two numbers."
        return a + b

    if __name__ == "__main__":
        mcp.run(transport="http")
    """

    def __init__(
        self,
        name: str | None = None,
        instructions: str | None = None,
        *,
        version: str | int | float | None = None,
        website_url: str | None = None,
        icons: Sequence[Any] | None = None,
        auth: Any = None,
        auth_settings: AuthSettings | None = None,
        middleware: Sequence[Any] | None = None,
        lifespan: Any = None,
        tools: Iterable[Any] | None = None,
        on_duplicate: Duplicates | None = None,
        mask_error_details: bool | None = None,
        dereference_schemas: bool = True,
        strict_input_validation: bool | None = None,
        tasks: bool | None = None,
        cache_ttl: int | None = None,
        cache_scope: Literal["public", "private"] | None = None,
        resource_security: ResourceSecurity | None = DEFAULT_RESOURCE_SECURITY,
        **options: Any,
    ) -> None:
        """Creates a server. Options of FastMCP that mcpace lacks raise ``UnsupportedOption``.

        ``auth`` is a token verifier, such as ``JWTVerifier``; ``auth_settings`` name the issuer of tokens for clients.
        ``cache_ttl``: the seconds for which clients may cache lists and resources.
        """
        for option, value in options.items():
            if option in _REMOVED:
                raise TypeError(f"FastMCP() no longer accepts `{option}`. {_REMOVED[option]}")
            if option not in _INSTEAD:
                raise TypeError(f"FastMCP() got an unexpected keyword argument {option!r}")
            if value not in (None, False, [], (), {}):
                raise UnsupportedOption(f"{option}={value!r}: {_INSTEAD[option]}")
        if on_duplicate not in (None, "warn", "error", "replace", "ignore"):
            raise ValueError(f"on_duplicate must be warn, error, replace or ignore, not {on_duplicate!r}")
        super().__init__(
            name or f"FastMCP-{secrets.token_hex(2)}",
            instructions=instructions,
            version=str(version) if version is not None else "",
            website_url=website_url,
            icons=icons,
            lifespan=lifespan,
            token_verifier=auth,
            auth=_auth_settings(auth, auth_settings),
            cache_hints=_cache_hints(cache_ttl, cache_scope),
        )
        self._on_duplicate: Duplicates = on_duplicate or "warn"
        self._above: list[tuple[FastMCP, str | None]] = []
        self.masks_errors = bool(mask_error_details)
        """Whether error messages for clients omit the details."""
        self.strict_input_validation = bool(strict_input_validation)
        """Whether arguments are validated without converting types."""
        self._tasks = tasks
        self.states = States()
        self._visibility = Visibility()
        self._parts: dict[tuple[Kind, str], Any] = {}
        self._resource_security_default = resource_security
        for one in middleware or ():
            self.add_middleware(one)
        for tool in tools or ():
            self.add_tool(tool)

    def __repr__(self) -> str:
        return f"FastMCP({self.name!r})"

    # Tools -------------------------------------------------------------------------------------------------------

    def tool(  # type: ignore[override]
        self,
        name_or_fn: Any = None,
        *,
        name: str | None = None,
        version: str | int | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Any] | None = None,
        tags: set[str] | None = None,
        output_schema: dict[str, Any] | Unset | None = UNSET,
        annotations: Any = None,
        meta: dict[str, Any] | None = None,
        app: Any = None,
        task: Any = None,
        timeout: float | None = None,
        auth: Any = None,
        run_in_thread: bool = True,
    ) -> Any:
        """Registers a function as a tool: as a decorator with or without parentheses, or called with the function."""
        _refuse_options(version=version, app=app)

        def register(function: FunctionT) -> FunctionT:
            tool = FunctionTool.of(
                function,
                name=name or (name_or_fn if isinstance(name_or_fn, str) else None),
                title=title,
                description=description,
                icons=icons,
                tags=tags,
                output_schema=output_schema,
                annotations=annotations,
                meta=meta,
                timeout=timeout,
                auth=auth,
                run_in_thread=run_in_thread,
                task=self._tasks if task is None else task,
            )
            self.add_tool(tool)
            return function

        return register(name_or_fn) if callable(name_or_fn) else register

    def add_tool(self, tool: Any, **options: Any) -> Any:  # type: ignore[override]
        """Registers a tool, or a function as one with the options of :meth:`tool`. Works while the server runs, too."""
        self._add_component(
            "tool", tool if isinstance(tool, Tool) else _component_of("tool", FunctionTool.of, tool, options)
        )
        return tool

    def remove_tool(self, name: str) -> None:
        """Removes a tool. Works while the server runs, too. Raises ``ToolError`` where there is none."""
        if ("tool", name) not in self._parts:
            raise ToolError(f"Unknown tool: {name}")
        self._take("tool", name)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        context: Any = None,
        *,
        principal: Any = TRUSTED,
        **_: Any,
    ) -> Any:
        """Calls a tool in this process. Raises ``ToolError`` where it fails.

        The guards check a given ``principal``; without one they are skipped. Returns a ``ToolResult``, or the tool's
        questions to the client (``InputRequiredResult``).
        """
        result = await super().call_tool(name, arguments, context or self._current_context(), principal=principal)
        if isinstance(result, InputRequiredResult):
            return result
        return ToolResult.model_validate(result.model_dump()) if type(result) is not ToolResult else result

    # Resources and prompts ---------------------------------------------------------------------------------------

    def resource(  # type: ignore[override]
        self,
        uri: str,
        *,
        name: str | None = None,
        version: str | int | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Any] | None = None,
        mime_type: str | None = None,
        tags: set[str] | None = None,
        annotations: Any = None,
        meta: dict[str, Any] | None = None,
        app: Any = None,
        task: Any = None,
        auth: Any = None,
        security: Any = UNSET,
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function as a resource, or as a resource template where the URI has variables."""
        if callable(uri):
            raise TypeError("The @resource decorator needs a URI: @resource('resource://…')")
        _refuse_options(version=version, task=task, app=app)
        details: dict[str, Any] = {
            "name": name,
            "title": title,
            "description": description,
            "mime_type": mime_type,
            "icons": icons,
            "annotations": Annotations.model_validate(annotations) if isinstance(annotations, dict) else annotations,
            "meta": meta,
            "tags": tags,
            "auth": auth,
        }

        def register(function: FunctionT) -> FunctionT:
            if UriTemplate.parse(rfc6570_template(uri)).variable_names:
                policy = self._resource_security_default if isinstance(security, Unset) else security
                self.add_template(FunctionTemplate.of(function, uri, security=policy, **details))
            else:
                self.add_resource(FunctionResource.of(function, uri, **details))
            return function

        return register

    def add_resource(self, resource: Any) -> Any:
        """Registers a resource, or a function that ``@resource`` marked. Works while the server runs, too."""
        if isinstance(resource, FunctionTemplate):
            return self.add_template(resource)
        if callable(resource) and not hasattr(resource, "uri"):
            made = _component_of("resource", _resource_of, resource)
            return self.add_template(made) if isinstance(made, FunctionTemplate) else self.add_resource(made)
        entry = resource if isinstance(resource, plain.Resource) else _foreign_resource(resource)
        check_uri(str(entry.uri))
        self._add_component("resource", entry)
        return resource

    def add_template(self, template: Any) -> Any:
        """Registers a resource template. Works while the server runs, too."""
        if not isinstance(template, plain.ResourceTemplate):
            raise RegistrationError(
                f"add_template takes a ResourceTemplate of mcpace.fastmcp, not {_kind_of(template)}; a function is one "
                "with @mcp.resource(uri)"
            )
        self._add_component("template", template)
        return template

    def remove_resource(self, uri: str) -> None:
        """Removes a resource or a resource template. Raises ``ValueError`` where there is none."""
        kind = next((kind for kind in ("resource", "template") if (kind, uri) in self._parts), None)
        if kind is None:
            raise ValueError(f"Unknown resource: {uri}")
        self._take(cast("Kind", kind), uri)

    async def read_resource(self, uri: Any, context: Any = None, *, principal: Any = TRUSTED, **_: Any) -> Any:
        """Reads a resource in this process. Returns a ``ResourceResult``, or the resource's questions to the client
        (``InputRequiredResult``).

        Raises ``NotFoundError`` for an unknown resource, ``ResourceError`` where reading fails.
        """
        try:
            contents = await super().read_resource(uri, context or self._current_context(), principal=principal)
        except ResourceNotFoundError as error:
            raise NotFoundError(f"Unknown resource: {str(uri)!r}") from error
        except MCPError as error:
            raise ResourceError(error.message) from error
        if isinstance(contents, InputRequiredResult):
            return contents
        own = [ResourceContent(one.content, one.mime_type, one.meta) for one in contents]
        return ResourceResult(own, getattr(contents, "meta", None))

    def prompt(  # type: ignore[override]
        self,
        name_or_fn: Any = None,
        *,
        name: str | None = None,
        version: str | int | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Any] | None = None,
        tags: set[str] | None = None,
        meta: dict[str, Any] | None = None,
        task: Any = None,
        auth: Any = None,
    ) -> Any:
        """Registers a function as a prompt, with or without parentheses."""
        _refuse_options(version=version, task=task)

        def register(function: FunctionT) -> FunctionT:
            prompt = FunctionPrompt.of(
                function,
                name=name or (name_or_fn if isinstance(name_or_fn, str) else None),
                title=title,
                description=description,
                icons=icons,
                tags=tags,
                meta=meta,
                auth=auth,
            )
            self.add_prompt(prompt)
            return function

        return register(name_or_fn) if callable(name_or_fn) else register

    def add_prompt(self, prompt: Any) -> Any:
        """Registers a prompt, or a function as one. Works while the server runs, too."""
        self._add_component(
            "prompt", prompt if isinstance(prompt, Prompt) else _component_of("prompt", FunctionPrompt.of, prompt)
        )
        return prompt

    def remove_prompt(self, name: str) -> None:
        """Removes a prompt. Works while the server runs, too. Raises ``ValueError`` where there is none."""
        if ("prompt", name) not in self._parts:
            raise ValueError(f"Unknown prompt: {name}")
        self._take("prompt", name)

    async def render_prompt(self, name: str, arguments: Mapping[str, Any] | None = None, **_: Any) -> PromptResult:
        """Renders a prompt in this process. Raises ``NotFoundError`` for an unknown prompt, ``PromptError`` where it
        fails."""
        prompt = self.registry.prompts.get(name)
        if prompt is None:
            raise NotFoundError(f"Unknown prompt: {name!r}")
        context = self._current_context()
        token = current.set(context)
        try:
            rendered: Any = await prompt.render(arguments, context)
        except MCPError as error:
            raise PromptError(error.message) from error
        finally:
            current.reset(token)
        return PromptResult(list(rendered), getattr(rendered, "description", None), getattr(rendered, "meta", None))

    def completion(self, function: Any = None) -> Any:
        """Registers the function that completes arguments, as a decorator with or without parentheses."""
        return super().completion() if function is None else super().completion()(function)

    def add_completion_handler(self, function: Callable[..., Any]) -> None:
        """Registers the function that completes arguments."""
        self.completion(function)

    def add_extension(self, extension: Any) -> None:
        """Adds an extension of the protocol: :class:`mcpace.Extension`, with tools and a hook around tool calls."""
        if not isinstance(extension, Extension):
            raise UnsupportedOption(
                f"add_extension() of {_kind_of(extension)}: derive it from mcpace.Extension, which brings tools, "
                "resources and a hook around tool calls; methods of its own are not served"
            )
        self._add_extension(extension)

    @property
    def local_provider(self) -> FastMCP:
        """The provider of the components, which is this server itself."""
        return self

    async def get_tool(self, name: str, version: Any = None) -> Any:
        """A tool by its name; ``None`` for an unknown or disabled tool."""
        return self.registry.tools.get(name)

    async def get_resource(self, uri: Any, version: Any = None) -> Any:
        """A resource by its URI; ``None`` for an unknown or disabled resource."""
        return self.registry.resources.get(str(uri))

    async def get_resource_template(self, uri: Any, version: Any = None) -> Any:
        """The resource template that matches a URI; ``None`` where none does."""
        return next((one for one in self.registry.templates.values() if one.matches(str(uri)) is not None), None)

    async def get_prompt(self, name: str, version: Any = None) -> Any:  # type: ignore[override]
        """A prompt by its name; ``None`` for an unknown or disabled prompt. ``render_prompt`` renders it."""
        return self.registry.prompts.get(name)

    # Visibility --------------------------------------------------------------------------------------------------

    def enable(self, *, only: bool = False, **criteria: Any) -> FastMCP:
        """Shows the components that match ``names``, ``keys``, ``tags`` and ``components``; with ``only=True``, hides
        all others."""
        if only:
            self._visibility.add(False, {"match_all": True})
        return self._show(True, criteria)

    def disable(self, **criteria: Any) -> FastMCP:
        """Hides the components that match ``names``, ``keys``, ``tags`` and ``components``. They can be neither listed
        nor used."""
        return self._show(False, criteria)

    def _show(self, enabled: bool, criteria: Mapping[str, Any]) -> FastMCP:
        if criteria.get("version") is not None:
            raise UnsupportedOption(f"version={criteria['version']!r}: {_NO_VERSIONS}")
        self._visibility.add(enabled, criteria)
        for (kind, key), entry in list(self._parts.items()):
            is_there = key in self._components_of(kind)
            if self._visibility.is_shown(kind, key, entry) == is_there:
                continue
            if is_there:
                self._hide(kind, key)
            else:
                self._register(kind, entry)
        return self

    # Components --------------------------------------------------------------------------------------------------

    def _add_component(self, kind: Kind, entry: Any) -> None:
        key = key_of(kind, entry)
        if (kind, key) in self._parts:
            words = f"{kind.title()} already exists: {key}"
            if self._on_duplicate == "error":
                raise RegistrationError(words)
            if self._on_duplicate == "ignore":
                return
            if self._on_duplicate == "warn":
                logger.warning("%s; it is replaced", words)
            self._take(kind, key)
        self._parts[kind, key] = entry
        if self._visibility.is_shown(kind, key, entry):
            self._register(kind, entry)

    def _take(self, kind: Kind, key: str) -> None:
        del self._parts[kind, key]
        if key in self._components_of(kind):
            self._hide(kind, key)

    def _register(self, kind: Kind, entry: Any) -> None:
        registry = self.registry
        add: dict[Kind, Callable[[Any], Any]] = {
            "tool": registry.add_tool,
            "resource": registry.add_resource,
            "template": registry.add_template,
            "prompt": registry.add_prompt,
        }
        add[kind](entry)
        for above, namespace in self._above:
            above._add_component(kind, move_component(kind, entry, namespace))

    def _hide(self, kind: Kind, key: str) -> None:
        entry = self._components_of(kind)[key]
        registry = self.registry
        remove = {"tool": registry.remove_tool, "prompt": registry.remove_prompt}.get(kind, registry.remove_resource)
        remove(key)
        for above, namespace in self._above:
            name = key_of(kind, move_component(kind, entry, namespace))
            if (kind, name) in above._parts:
                above._take(kind, name)

    def _components_of(self, kind: Kind) -> dict[str, Any]:
        registry = self.registry
        shelves: dict[Kind, dict[str, Any]] = {
            "tool": registry.tools,
            "resource": registry.resources,
            "template": registry.templates,
            "prompt": registry.prompts,
        }
        return shelves[kind]

    def _current_context(self) -> Context:
        """A context nested in that of the current call; outside of a call, a context without one."""
        context = current.get(None)
        return Context(server=self) if context is None else context.nested()

    # Servers within servers, and middleware ----------------------------------------------------------------------

    def mount(self, server: Any, namespace: str | None = None, **more: Any) -> None:
        """Adds another server's tools, resources and prompts to this server, including those that are registered later.

        Tools and prompts are named ``namespace_name``, resources ``scheme://namespace/path``."""
        if more:
            raise UnsupportedOption(f"mount() has no {', '.join(sorted(more))}; rename where things are registered")
        if not isinstance(server, FastMCP):
            raise UnsupportedOption(
                f"mount() takes a FastMCP of mcpace.fastmcp, not {_kind_of(server)}: import FastMCP from "
                "mcpace.fastmcp there, too"
            )
        if server.middleware:
            raise UnsupportedOption("mount() of a server with middleware: add the middleware to the outer server")
        if server is self:
            raise ValueError("a server can't be mounted in itself")
        for kind in KINDS:
            for entry in list(server._components_of(kind).values()):
                self._add_component(kind, move_component(kind, entry, namespace))
        self._routes.extend(server._routes)
        server._above.append((self, namespace))

    def add_middleware(self, middleware: Any) -> None:
        """Adds middleware inside the existing middleware. Call it before the server runs."""
        foreign = next((base for base in type(middleware).__mro__ if base.__module__.startswith("fastmcp.")), None)
        if foreign is not None:
            raise UnsupportedOption(
                f"add_middleware({type(middleware).__name__}(…)): its class {foreign.__name__} is fastmcp's and reads "
                f"FastMCP's own request. {_MIDDLEWARE.get(foreign.__name__, _OWN_MIDDLEWARE)}"
            )
        if not self.middleware:
            self.middleware.append(catch_tool_errors)
        self.middleware.append(Adapted(self, middleware))

    add_provider = _unsupported_method("add_provider", _INSTEAD["providers"])
    add_transform = _unsupported_method("add_transform", _INSTEAD["transforms"])
    add_tool_transformation = _unsupported_method("add_tool_transformation", _INSTEAD["transforms"])
    import_server = _unsupported_method("import_server", "mount() the server: what it has is there at once")
    from_openapi = _unsupported_method("from_openapi", _ADOPTED)
    from_fastapi = _unsupported_method("from_fastapi", _ADOPTED)
    as_proxy = _unsupported_method("as_proxy", _ADOPTED)

    # Running -----------------------------------------------------------------------------------------------------

    def run(self, transport: Any = None, show_banner: bool | None = None, **kwargs: Any) -> None:
        """Serves until it is stopped: over ``stdio``, or over ``http`` (``streamable-http``) with ``host``, ``port``
        and ``path``."""
        super().run(_transport(transport), **_keywords(kwargs))

    async def run_async(self, transport: Any = None, show_banner: bool | None = None, **kwargs: Any) -> None:
        """Serves as :meth:`run` does, within a running event loop."""
        from mcpace.server.running.transports import run_async

        await run_async(self, _transport(transport), _keywords(kwargs))

    async def run_http_async(self, show_banner: bool = True, transport: Any = "http", **kwargs: Any) -> None:
        """Serves over HTTP, within a running event loop."""
        await self.run_async(transport, **kwargs)

    def http_app(
        self,
        path: str | None = None,
        middleware: Any = None,
        json_response: bool | None = None,
        stateless_http: bool | None = None,
        transport: str = "http",
        event_store: Any = None,
        retry_interval: int | None = None,
        host_origin_protection: Any = None,
        allowed_hosts: Sequence[str] | None = None,
        allowed_origins: Sequence[str] | None = None,
        session_idle_timeout: Any = None,
    ) -> Any:
        """A Starlette application: the endpoint, custom routes, Starlette's own ``middleware``, and a ``lifespan``.

        ``allowed_hosts`` and ``allowed_origins`` are accepted in addition to loopback;
        ``host_origin_protection=False`` accepts any. Streams can be resumed without an ``event_store``.
        """
        if event_store is not None:
            raise UnsupportedOption("event_store=…: streams can be taken up again without one; leave it out")
        given: dict[str, Any] = _keywords(
            {
                "json_response": json_response,
                "stateless_http": stateless_http,
                "retry_interval": retry_interval,
                "session_idle_timeout": None if session_idle_timeout == "auto" else session_idle_timeout,
            }
        )
        if host_origin_protection is False or allowed_hosts is not None or allowed_origins is not None:
            given["transport_security"] = {
                "enable_dns_rebinding_protection": host_origin_protection is not False,
                "allowed_hosts": [*_LOOPBACK, *(allowed_hosts or ())],
                "allowed_origins": [*_LOOPBACK_ORIGINS, *(allowed_origins or ())],
            }
        if path is not None:
            given["sse_path" if transport == "sse" else "streamable_http_path"] = path
        application = self.sse_app(**given) if transport == "sse" else self.streamable_http_app(**given)
        for one in reversed(middleware or ()):
            application.add_middleware(one.cls, *one.args, **one.kwargs)
        return application

    def _context(self, call: Any, method: str) -> Context:
        """The context of a call, which also becomes the current context of functions that request it."""
        context = Context(call=call, server=self, method=method)
        current.set(context)
        return context


def _refuse_options(**options: Any) -> None:
    instead = {
        "version": _NO_VERSIONS,
        "task": "tools run as tasks, resources and prompts don't",
        "app": "MCP Apps are not offered; put their resource URI into meta={'ui': …}",
    }
    for option, value in options.items():
        if value is not None and value is not False:
            raise UnsupportedOption(f"{option}={value!r}: {instead[option]}")


def _transport(name: str | None) -> Any:
    names = {
        None: "stdio",
        "stdio": "stdio",
        "http": "streamable-http",
        "streamable-http": "streamable-http",
        "sse": "sse",
    }
    if name not in names:
        raise ValueError(f"Unknown transport: {name}")
    return names[name]


def _keywords(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


_ADDRESS = "http://localhost:8000"
_LOOPBACK = [entry for name in ("127.0.0.1", "localhost", "[::1]") for entry in (name, f"{name}:*")]
_LOOPBACK_ORIGINS = [f"{scheme}://{name}" for scheme in ("http", "https") for name in _LOOPBACK]
_NO_VERSIONS = "components have no versions here; give a new version another name"
_OWN_MIDDLEWARE = "Import Middleware from mcpace.fastmcp and derive your own class from it"
_MIDDLEWARE = {
    "AuthMiddleware": "Give tools, resources and prompts auth= checks instead",
    "RateLimitingMiddleware": "Use rate_limits= of mcpace.MCPServer instead",
    "SlidingWindowRateLimitingMiddleware": "Use rate_limits= of mcpace.MCPServer instead",
    "TimingMiddleware": "The runtime reports durations by OpenTelemetry: leave it out, or derive your own Middleware",
    "ToolInjectionMiddleware": "Add the tools with add_tool() instead",
    "PingMiddleware": "The runtime keeps connections alive by itself: leave it out",
}
_REMOVED = {
    "include_tags": "Use `server.enable(tags=..., only=True)` after creating the server.",
    "exclude_tags": "Use `server.disable(tags=...)` after creating the server.",
    "tool_serializer": "Return ToolResult from your tools instead.",
    "tool_transformations": "Give names and descriptions where tools are registered.",
    "sampling_handler": "Call an LLM directly from your tool.",
    "sampling_handler_behavior": "Call an LLM directly from your tool.",
    "on_duplicate_tools": "Use `on_duplicate=` instead.",
    "on_duplicate_resources": "Use `on_duplicate=` instead.",
    "on_duplicate_prompts": "Use `on_duplicate=` instead.",
    "host": "Pass `host` to `run()`.",
    "port": "Pass `port` to `run()`.",
    "sse_path": "Pass `path` to `run()` or `http_app()`.",
    "message_path": "Pass `message_path` to `run()`.",
    "streamable_http_path": "Pass `path` to `run()` or `http_app()`.",
    "json_response": "Pass `json_response` to `run()` or `http_app()`.",
    "stateless_http": "Pass `stateless_http` to `run()` or `http_app()`.",
    "debug": "Set the level of the logger `mcpace`.",
    "log_level": "Set the level of the logger `mcpace`.",
}


def _cache_hints(
    ttl: int | None, scope: Literal["public", "private"] | None
) -> dict[CacheableMethod, CacheHint] | None:
    if ttl is None:
        if scope is not None:
            raise ValueError("cache_scope requires cache_ttl: clients keep nothing without a time")
        return None
    if ttl <= 0:
        raise ValueError(f"cache_ttl must be a positive integer, got {ttl}")
    return dict.fromkeys(CACHEABLE, CacheHint(ttl * 1000, scope or "private"))


def _auth_settings(verifier: Any, given: AuthSettings | None) -> AuthSettings | None:
    """The settings of a server with a token verifier. Raises ``UnsupportedOption`` for an object that isn't one."""
    if verifier is None or given is not None:
        return given
    is_foreign = any(base.__module__.startswith("fastmcp.") for base in type(verifier).__mro__)
    if is_foreign or not callable(getattr(verifier, "verify_token", None)):
        raise UnsupportedOption(
            f"auth={_kind_of(verifier)}: give auth=JWTVerifier(…) or IntrospectionTokenVerifier(…) of mcpace, which "
            "checks the issuer's tokens; OAuth providers and proxies issue tokens, which mcpace doesn't"
        )
    if getattr(verifier, "wants_resource", False):
        raise UnsupportedOption(
            f"auth={type(verifier).__name__}(…) takes tokens for any service: give it audience=…, or give the server "
            "auth_settings=AuthSettings(issuer_url=…, resource_server_url=…)"
        )
    from mcpace.server.auth.bearer_tokens import AuthSettings

    issuers = getattr(verifier, "issuer", None) or ()
    named = [issuers] if isinstance(issuers, str) else list(issuers)
    addresses = [one for one in named if one.startswith(("http://", "https://"))]
    # The metadata for clients names the first issuer and the server's default address.
    issuer = addresses[0] if addresses else _ADDRESS
    return AuthSettings.model_validate({"issuer_url": issuer, "resource_server_url": f"{_ADDRESS}/mcp"})


def _kind_of(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def _component_of(kind: str, make: Callable[..., Any], function: Any, given: Mapping[str, Any] | None = None) -> Any:
    """A component of a function, with the options of the decorator that marked the function."""
    if not callable(function) or _kind_of(function).startswith("fastmcp."):
        raise RegistrationError(
            f"add_{kind}() takes a function, or a {kind} of mcpace.fastmcp, not {_kind_of(function)}: register the "
            f"function with @mcp.{kind}"
        )
    marked = getattr(function, "__fastmcp__", None)
    if marked is None or given:
        return make(function, **given or {})
    options = {key: value for key, value in vars(marked).items() if key not in ("type", "enabled")}
    _refuse_options(version=options.pop("version", None), app=options.pop("app", None))
    if kind != "tool":
        _refuse_options(task=options.pop("task", None))
    # FastMCP's own decorators mark options that were not given by objects of these types.
    unset = {"output_schema": ("ellipsis", "NotSetT"), "security": ("InheritSecurity",)}
    left = {key: value for key, value in options.items() if type(value).__name__ not in unset.get(key, ())}
    return make(function, **left)


def _resource_of(function: Callable[..., Any], uri: str | None = None, **options: Any) -> Any:
    if uri is None:
        raise RegistrationError(f"add_resource({function!r}): a function has no URI; use @mcp.resource(uri)")
    if UriTemplate.parse(rfc6570_template(uri)).variable_names:
        return FunctionTemplate.of(function, uri, **options)
    options.pop("security", None)
    return FunctionResource.of(function, uri, **options)


def _foreign_resource(resource: Any) -> ForeignResource:
    if not callable(getattr(resource, "read", None)) or not hasattr(resource, "uri"):
        raise RegistrationError(
            f"add_resource takes a Resource, not {_kind_of(resource)}; a function is one with @mcp.resource(uri)"
        )
    return ForeignResource(resource)
