"""``FastMCP``: functions in, a server out. The names, keywords and behaviours are FastMCP's.

Design constraint: a face on :class:`mcpace.MCPServer`. What FastMCP has and the runtime has not is refused by its name.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from mcpace.fastmcp.authorization import Component, guarded
from mcpace.fastmcp.context import Context, States, current
from mcpace.fastmcp.dependencies import injected
from mcpace.fastmcp.middleware import Adapted, outermost
from mcpace.fastmcp.tools import UNSET, FunctionTool, ToolResult, Unset
from mcpace.server.app import MCPServer
from mcpace.server.errors import RegistrationError, UnsupportedOption, logger
from mcpace.server.principal import TRUSTED
from mcpace.server.prompts import Prompt
from mcpace.server.resources import ResourceTemplate, check_uri
from mcpace.server.signature import name_of
from mcpace.server.tools import Tool
from mcpace.server.uri_template import UriTemplate
from mcpace.types import InputRequiredResult

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
Duplicates = Literal["warn", "error", "replace", "ignore"]

_INSTEAD = {
    "auth": "pass token_verifier= and auth=AuthSettings(…) to mcpace.MCPServer, which checks tokens of any issuer",
    "providers": "register what they provide, or mount() a server",
    "transforms": "give names and descriptions where tools are registered",
    "list_page_size": "the runtime's pages hold 1,000 entries",
    "strict_input_validation": "annotate parameters with pydantic's Strict types",
    "tasks": "tasks are offered by mcpace_serve, not yet from Python",
    "session_state_store": "state is kept in this process",
    "request_state_security": "the runtime seals requestState with a key of its own",
    "cache_ttl": "pass cache_hints= to mcpace.MCPServer",
    "cache_scope": "pass cache_hints= to mcpace.MCPServer",
    "client_log_level": "clients set the level themselves",
    "experimental_capabilities": "there are none",
}


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
        middleware: Sequence[Any] | None = None,
        lifespan: Any = None,
        tools: Iterable[Any] | None = None,
        on_duplicate: Duplicates | None = None,
        mask_error_details: bool | None = None,
        dereference_schemas: bool = True,
        **options: Any,
    ) -> None:
        for option, value in options.items():
            if option not in _INSTEAD:
                raise TypeError(f"FastMCP() got an unexpected keyword argument {option!r}")
            if value is not None:
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
        )
        self._on_duplicate: Duplicates = on_duplicate or "warn"
        self._above: list[tuple[FastMCP, str | None]] = []
        self.masks_errors = bool(mask_error_details)
        self.states = States()
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
        task: Any = None,
        timeout: float | None = None,
        auth: Any = None,
        run_in_thread: bool = True,
    ) -> Any:
        """Registers a function as a tool, with or without parentheses; with a function as argument, at once."""
        _refuse(version=version, task=task)

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
            )
            self.add_tool(tool)
            return function

        return register(name_or_fn) if callable(name_or_fn) else register

    def add_tool(self, tool: Any) -> Any:  # type: ignore[override]
        """Registers a tool, or a function as one. Also while the server runs."""
        made = tool if isinstance(tool, Tool) else FunctionTool.of(tool)
        if self._may_add("Tool", made.name, self.registry.tools, self.registry.remove_tool):
            self.registry.add_tool(made)
            for above, namespace in self._above:
                above.add_tool(_renamed(made, _name(namespace, made.name)))
        return made

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

        With ``principal``, as that caller's client would; without, no guard looks at it. Gives a ``ToolResult``, or
        what the tool asks the client (``InputRequiredResult``).
        """
        result = await super().call_tool(name, arguments, context or Context(server=self), principal=principal)
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
        task: Any = None,
        auth: Any = None,
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function as a resource, or as a family of them where the URI has variables."""
        if callable(uri):
            raise TypeError("The @resource decorator needs a URI: @resource('resource://…')")
        _refuse(version=version, task=task)
        template = _template(uri)
        is_family = bool(UriTemplate.parse(template).variable_names)
        where = {"uri_template": template} if is_family else {"uri": uri}
        details: dict[str, Any] = {
            "name": name,
            "title": title,
            "description": description,
            "mime_type": mime_type,
            "icons": icons,
            "annotations": annotations,
            "meta": _tagged(meta, tags),
            "guards": guarded(auth, Component(name or uri, frozenset(tags or ()), meta, **where)),
        }

        def register(function: FunctionT) -> FunctionT:
            bare = injected(function)
            if is_family:
                self._add_template(ResourceTemplate.from_function(bare, template, **details))
            else:
                from mcpace.server.resources import FunctionResource, check_static

                check_static(bare, uri)
                self.add_resource(FunctionResource.from_function(bare, uri, **details))
            return function

        return register

    def add_resource(self, resource: Any) -> Any:
        """Registers a resource. Also while the server runs."""
        uri = str(resource.uri)
        check_uri(uri)
        if self._may_add("Resource", uri, self.registry.resources, self.registry.remove_resource):
            self.registry.add_resource(resource)
            for above, namespace in self._above:
                above.add_resource(_moved(resource, uri, namespace))
        return resource

    def _add_template(self, template: ResourceTemplate) -> None:
        self.registry.add_template(template)
        for above, namespace in self._above:
            above._add_template(_moved_template(template, namespace))

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
        _refuse(version=version, task=task)

        def register(function: FunctionT) -> FunctionT:
            called = name or (name_or_fn if isinstance(name_or_fn, str) else None)
            guards = guarded(auth, Component(called or name_of(function), frozenset(tags or ()), meta))
            self.add_prompt(Prompt.from_function(injected(function), called, title, description, icons, guards=guards))
            return function

        return register(name_or_fn) if callable(name_or_fn) else register

    def add_prompt(self, prompt: Prompt) -> Any:
        """Registers a prompt. Also while the server runs."""
        if self._may_add("Prompt", prompt.name, self.registry.prompts, self.registry.remove_prompt):
            self.registry.add_prompt(prompt)
            for above, namespace in self._above:
                above.add_prompt(_renamed(prompt, _name(namespace, prompt.name)))
        return prompt

    # Servers within servers, and middleware ----------------------------------------------------------------------

    def mount(self, server: FastMCP, namespace: str | None = None, **more: Any) -> None:
        """Puts another server's tools, resources and prompts into this one, now and whenever it gets new ones.

        Tools and prompts are named ``namespace_name``, resources ``scheme://namespace/path``."""
        if more:
            raise UnsupportedOption(f"mount() has no {', '.join(sorted(more))}; rename where things are registered")
        if not isinstance(server, FastMCP):
            raise TypeError(f"mount() takes a FastMCP, not {type(server).__name__}")
        if server.middleware:
            raise UnsupportedOption("mount() of a server with middleware: add the middleware to the outer server")
        if server is self:
            raise ValueError("a server can't be mounted in itself")
        for tool in server.registry.tools.values():
            self.add_tool(_renamed(tool, _name(namespace, tool.name)))
        for resource in server.registry.resources.values():
            self.add_resource(_moved(resource, str(resource.uri), namespace))
        for template in server.registry.templates.values():
            self._add_template(_moved_template(template, namespace))
        for prompt in server.registry.prompts.values():
            self.add_prompt(_renamed(prompt, _name(namespace, prompt.name)))
        server._above.append((self, namespace))

    def add_middleware(self, middleware: Any) -> None:
        """Adds middleware, innermost of those that are there. Before the server is run."""
        if not self.middleware:
            self.middleware.append(outermost)
        self.middleware.append(Adapted(self, middleware))

    # Running -----------------------------------------------------------------------------------------------------

    def run(self, transport: Any = None, show_banner: bool | None = None, **kwargs: Any) -> None:
        """Serves until it is told to stop: over ``stdio``, or ``http`` (``streamable-http``) with ``host``, ``port``,
        ``path``."""
        super().run(_transport(transport), **_keywords(kwargs))

    async def run_async(self, transport: Any = None, show_banner: bool | None = None, **kwargs: Any) -> None:
        """The same, within a running event loop."""
        from mcpace.server.launch import run_async

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
        **more: Any,
    ) -> Any:
        """An ASGI application."""
        if middleware or event_store is not None or more:
            named = ["middleware"] * bool(middleware) + ["event_store"] * (event_store is not None) + sorted(more)
            raise UnsupportedOption(f"http_app() has no {', '.join(named)}: wrap the application instead")
        options: dict[str, Any] = {"json_response": json_response, "stateless_http": stateless_http}
        given = {name: value for name, value in options.items() if value is not None}
        if path is not None:
            given["sse_path" if transport == "sse" else "streamable_http_path"] = path
        return self.sse_app(**given) if transport == "sse" else self.streamable_http_app(**given)

    def _context(self, call: Any, method: str) -> Context:
        """A call's context, which functions also find by themselves."""
        context = Context(call=call, server=self, method=method)
        current.set(context)
        return context

    def _may_add(self, kind: str, name: str, known: Mapping[str, Any], remove: Callable[[str], Any]) -> bool:
        if name not in known:
            return True
        if self._on_duplicate == "error":
            raise RegistrationError(f"{kind} already exists: {name}")
        if self._on_duplicate == "ignore":
            return False
        if self._on_duplicate == "warn":
            logger.warning("%s already exists: %s; it is replaced", kind, name)
        remove(name)
        return True


def _refuse(**options: Any) -> None:
    instead = {
        "version": "give a new version another name",
        "task": "tasks are not offered from Python yet",
    }
    for option, value in options.items():
        if value is not None:
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


def _name(namespace: str | None, name: str) -> str:
    return f"{namespace}_{name}" if namespace else name


def _renamed(part: Any, name: str) -> Any:
    from dataclasses import replace

    return part if part.name == name else replace(part, name=name)


def _within(uri: str, namespace: str | None) -> str:
    scheme, mark, rest = uri.partition("://")
    return f"{scheme}://{namespace}/{rest}" if namespace and mark else uri


def _moved(resource: Any, uri: str, namespace: str | None) -> Any:
    moved = _within(uri, namespace)
    return resource if moved == uri else resource.model_copy(update={"uri": moved})


def _moved_template(template: ResourceTemplate, namespace: str | None) -> ResourceTemplate:
    from dataclasses import replace

    uri = _within(template.uri_template, namespace)
    return replace(template, uri_template=uri, template=UriTemplate.parse(uri))


def _template(uri: str) -> str:
    """FastMCP's ``{path*}`` is RFC 6570's ``{+path}``."""
    import re

    return re.sub(r"\{(\w+)\*\}", r"{+\1}", uri)


def _tagged(meta: dict[str, Any] | None, tags: set[str] | None) -> dict[str, Any]:
    own = meta or {}
    return {**own, "fastmcp": {**own.get("fastmcp", {}), "tags": sorted(tags or ())}}
