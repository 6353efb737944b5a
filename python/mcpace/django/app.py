"""``MCPServer`` for Django: specs in, a server out.

Design constraint: only the surface. What a spec becomes is elsewhere; what isn't Django's is
:class:`mcpace.MCPServer`'s, whose decorators for plain functions are here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from rest_framework_services import SelectorKind, SelectorSpec, ServiceSpec

from mcpace.django import auth as backends
from mcpace.django import views
from mcpace.django.conf import setting
from mcpace.django.limits import CacheRateLimit
from mcpace.django.longway import Dispatched
from mcpace.django.outputs import Writer
from mcpace.django.permissions import Maker, compiled, is_named, scopes_of
from mcpace.django.pool import Seeds
from mcpace.django.request import Call
from mcpace.django.resources import guarded, reader
from mcpace.django.selectors import Selector
from mcpace.django.services import Service
from mcpace.django.specs import check_selector, check_service, is_compiled_selector, is_compiled_service
from mcpace.django.tool import SpecTool, check_name
from mcpace.django.words import ArgumentBinding, OutputFormat, UnknownArguments, chosen
from mcpace.server.app import MCPServer as PlainServer
from mcpace.server.auth import AuthSettings
from mcpace.server.errors import RegistrationError, ToolError
from mcpace.server.guards import Guards, RateLimit, guards, requires
from mcpace.server.inprocess import admitted_here
from mcpace.server.prompts import Prompt
from mcpace.server.resources import FunctionResource, ResourceTemplate
from mcpace.server.uri_template import UriTemplate
from mcpace.types import CallToolResult

Limits = Sequence[RateLimit | CacheRateLimit | str]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class _Unset:
    """What stands where nothing was given and ``None`` says something."""


UNSET = _Unset()


class MCPServer(PlainServer[Any]):
    """A server of a Django project's services and selectors::

    server = MCPServer("invoices", auth=DjangoOAuthToolkit())

    server.register_service_tool(
        name="invoices.create",
        spec=ServiceSpec(
            service=create_invoice, input_serializer=InvoiceInput, permission_classes=[IsAuthenticated]
        ),
    )

    urlpatterns = [path("mcp/", server.urls)]
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        auth: Any = None,
        pool_seeds: Mapping[str, Callable[..., Any]] | None = None,
        url_namespace: str = "mcp",
        **options: Any,
    ) -> None:
        """``auth``: an authentication backend (:class:`DjangoOAuthToolkit`, :class:`AllowAny`), or else the setting
        ``AUTH_BACKEND``'s. ``pool_seeds``: more keywords for services and selectors, by name, each a function of any of
        ``user``, ``request``, ``view``. The other options are :class:`mcpace.MCPServer`'s."""
        self.backend = backends.backend(auth)
        self._url_namespace = url_namespace
        self._pool_seeds = dict(pool_seeds or {})
        self._seeds = Seeds(self._pool_seeds)
        if isinstance(self.backend, backends.AllowAny):
            self._acting = self.backend.user
        else:
            self._acting = None
            options |= {"auth": _auth_settings(self.backend), "token_verifier": self.backend}
        super().__init__(name, **options)

    # Tools -------------------------------------------------------------------------------------------------------

    def register_service_tool(
        self,
        *,
        name: str,
        spec: ServiceSpec[Any, Any, Any],
        description: str | None = None,
        title: str | None = None,
        icons: Sequence[Any] | None = None,
        annotations: Any = None,
        meta: dict[str, Any] | None = None,
        permissions: Sequence[Any] | None = None,
        rate_limits: Limits = (),
        unknown_arguments: UnknownArguments | str | None = None,
        argument_binding: ArgumentBinding | str = ArgumentBinding.BUNDLE,
        output_format: OutputFormat | str | None = None,
        max_result_bytes: int | _Unset | None = UNSET,
        dispatch_timeout: float | _Unset | None = UNSET,
    ) -> SpecTool:
        """Registers a ``ServiceSpec``: something that is done.

        ``permissions`` are asked after the spec's own ``permission_classes``. What isn't given is as the settings say.
        Raises ``RegistrationError`` where the spec can't be a tool, or nobody has said who may call it.
        """
        check_name(name)
        check_service(spec, name)
        makers = self._permissions(name, spec.permission_classes, permissions)
        unknown = self._unknown(unknown_arguments)
        binding = chosen(ArgumentBinding, argument_binding, "argument_binding")
        passes = unknown is UnknownArguments.PASSTHROUGH
        runs: Any
        if is_compiled_service(spec):
            runs = Service(name, spec, self._seeds, makers, binding=binding, passes_unknown=passes)
        else:
            _check_long_way(name, unknown)
            ignores = unknown is UnknownArguments.IGNORE
            runs = Dispatched(
                name, spec, self._seeds, makers, binding=binding, ignores_unknown=ignores, pool_seeds=self._pool_seeds
            )
        hints = {"readOnlyHint": False}
        if spec.idempotent is not None:
            hints["idempotentHint"] = spec.idempotent
        return self._add(
            name, runs, spec.service, unknown, rate_limits, makers, output_format, max_result_bytes,
            dispatch_timeout,
            title=title, description=description, icons=icons, meta=meta, annotations={**hints, **(annotations or {})},
        )  # fmt: skip

    def register_selector_tool(
        self,
        *,
        name: str,
        spec: SelectorSpec[Any, Any],
        description: str | None = None,
        title: str | None = None,
        icons: Sequence[Any] | None = None,
        annotations: Any = None,
        meta: dict[str, Any] | None = None,
        permissions: Sequence[Any] | None = None,
        rate_limits: Limits = (),
        unknown_arguments: UnknownArguments | str | None = None,
        output_format: OutputFormat | str | None = None,
        paginate: bool = False,
        ordering_fields: Sequence[str] = (),
        max_page_size: int | _Unset | None = UNSET,
        max_result_bytes: int | _Unset | None = UNSET,
        dispatch_timeout: float | _Unset | None = UNSET,
    ) -> SpecTool:
        """Registers a ``SelectorSpec``: something that is read.

        ``paginate`` adds the arguments ``page`` and ``limit`` and answers with a page; ``ordering_fields`` adds
        ``ordering`` (a filter set's own ``OrderingFilter`` does, too). Raises ``RegistrationError`` as
        :meth:`register_service_tool` does.
        """
        check_name(name)
        check_selector(spec, name)
        makers = self._permissions(name, spec.permission_classes, permissions)
        unknown = self._unknown(unknown_arguments)
        if unknown is UnknownArguments.PASSTHROUGH:
            raise RegistrationError(
                f"tool {name!r}: a selector takes what its signature names; PASSTHROUGH is a service's"
            )
        most = setting("MAX_PAGE_SIZE") if isinstance(max_page_size, _Unset) else max_page_size
        pages: dict[str, Any] = {"paginate": paginate, "ordering": tuple(ordering_fields), "max_page": most}
        runs: Any
        if is_compiled_selector(spec):
            runs = Selector(name, spec, self._seeds, makers, **pages)
        else:
            ignores = unknown is UnknownArguments.IGNORE
            runs = Dispatched(
                name, spec, self._seeds, makers, binding=ArgumentBinding.BUNDLE, ignores_unknown=ignores,
                pool_seeds=self._pool_seeds, **pages,
            )  # fmt: skip
        return self._add(
            name, runs, spec.selector, unknown, rate_limits, makers, output_format, max_result_bytes,
            dispatch_timeout,
            title=title, description=description, icons=icons, meta=meta,
            annotations={"readOnlyHint": True, **(annotations or {})},
        )  # fmt: skip

    def service_tool(
        self,
        *,
        name: str | None = None,
        input_serializer: type[Any] | None = None,
        output_serializer: type[Any] | None = None,
        permission_classes: Sequence[Any] | None = None,
        atomic: bool = True,
        **options: Any,
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers the decorated function as a service. The other options are :meth:`register_service_tool`'s."""

        def register(function: FunctionT) -> FunctionT:
            shown: SelectorSpec[Any, Any] | None = None
            if output_serializer is not None:
                shown = SelectorSpec(kind=SelectorKind.RETRIEVE, output_serializer=output_serializer)
            spec: ServiceSpec[Any, Any, Any] = ServiceSpec(
                service=function,
                input_serializer=input_serializer,
                output_selector_spec=shown,
                permission_classes=permission_classes,
                atomic=atomic,
            )
            self.register_service_tool(name=name or function.__name__, spec=spec, **options)
            return function

        return register

    def selector_tool(
        self,
        *,
        kind: SelectorKind,
        name: str | None = None,
        output_serializer: type[Any] | None = None,
        filter_set: Any = None,
        permission_classes: Sequence[Any] | None = None,
        **options: Any,
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers the decorated function as a selector. The other options are :meth:`register_selector_tool`'s."""

        def register(function: FunctionT) -> FunctionT:
            spec: SelectorSpec[Any, Any] = SelectorSpec(
                kind=kind,
                selector=function,
                output_serializer=output_serializer,
                filter_set=filter_set,
                permission_classes=permission_classes,
            )
            self.register_selector_tool(name=name or function.__name__, spec=spec, **options)
            return function

        return register

    # Resources and prompts ---------------------------------------------------------------------------------------

    def register_resource(
        self,
        *,
        name: str,
        uri_template: str,
        selector: SelectorSpec[Any, Any],
        output_serializer: type[Any] | None = None,
        description: str | None = None,
        title: str | None = None,
        icons: Sequence[Any] | None = None,
        mime_type: str = "application/json",
        annotations: Any = None,
        meta: dict[str, Any] | None = None,
        permissions: Sequence[Any] | None = None,
        rate_limits: Limits = (),
    ) -> None:
        """Registers a ``SelectorSpec`` as a resource, or as a family of them: the variables of ``uri_template``
        (``invoices://{pk}``) are the selector's arguments."""
        check_selector(selector, name, "register_resource")
        if not is_compiled_selector(selector):
            raise RegistrationError(
                f"resource {name!r}: its selector must be a plain function of named arguments, and its spec no more "
                "than what a row is shown by; register a selector tool for more"
            )
        makers = self._permissions(name, selector.permission_classes, permissions, "resource")
        variables = UriTemplate.parse(uri_template).variable_names
        counted, own = _split(rate_limits)
        read = reader(name, selector, list(variables), self._seeds, makers, output_serializer, counted, self._acting)
        details: dict[str, Any] = {
            "guards": _guards(makers, own, f"resource {name!r}"),
            "name": name, "title": title, "description": description or _told(selector.selector), "icons": icons,
            "mime_type": mime_type, "annotations": annotations, "meta": meta,
        }  # fmt: skip
        if variables:
            self.registry.add_template(ResourceTemplate.from_function(read, uri_template, **details))
        else:
            self.registry.add_resource(FunctionResource.from_function(read, uri_template, **details))

    def register_prompt(
        self,
        *,
        name: str,
        render: Callable[..., Any],
        description: str | None = None,
        title: str | None = None,
        icons: Sequence[Any] | None = None,
        permissions: Sequence[Any] | None = None,
    ) -> None:
        """Registers a function as a prompt: its parameters are what a user fills in, its value the messages."""
        makers = compiled(None, permissions, f"prompt {name!r}")
        function = guarded(name, render, makers, self._acting)
        told = description or _told(render)
        guarding = _guards(makers, [], f"prompt {name!r}")
        self.add_prompt(Prompt.from_function(function, name, title, told, icons, guards=guarding))

    # In this process ---------------------------------------------------------------------------------------------

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        context: Any = None,
        *,
        user: Any = None,
        principal: Any = None,
        request: Any = None,
    ) -> Any:
        """Calls a spec's tool in this process and thread, on ``user``'s behalf: permissions, limits, validation and
        transaction are a client's.

        It runs within whatever transaction and connection there is: in a test or a view, the caller's own. Scopes are
        those of ``principal``, where one is given. Raises ``ToolError`` where it fails, ``Forbidden`` where the user
        may not. Given a context, or a tool of a plain function, it is the official SDK's coroutine.
        """
        tool = self.registry.tools.get(name)
        if context is not None or (tool is not None and not isinstance(tool, SpecTool)):
            return super().call_tool(name, arguments, context)
        return self._called(name, arguments, user, principal, request)

    async def acall_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        user: Any = None,
        principal: Any = None,
        request: Any = None,
    ) -> CallToolResult:
        """The same from asynchronous code."""
        from asgiref.sync import sync_to_async

        return await sync_to_async(self._called)(name, arguments, user, principal, request)

    def _called(
        self, name: str, arguments: Mapping[str, Any] | None, user: Any, principal: Any, request: Any
    ) -> CallToolResult:
        tool: Any = self.registry.tools.get(name)
        if not isinstance(tool, SpecTool):
            raise ToolError(f"Unknown tool: {name}" if tool is None else f"{name} is a plain function's: call that")
        call = Call(name, dict(arguments or {}), user=user, request=request)
        call.principal = principal
        if self._acting is not None:
            call.acts_for(self._acting)
        admitted_here(self, "tool", name, principal, self._inside.guards_of(tool))
        return tool.result(call)

    # Serving -----------------------------------------------------------------------------------------------------

    @property
    def urls(self) -> views.Patterns:
        """For a URLconf under WSGI: ``path("mcp/", server.urls)``. Replies are JSON, and there are no sessions."""
        return views.patterns(self, self._url_namespace, is_async=False)

    @property
    def async_urls(self) -> views.Patterns:
        """For a URLconf under ASGI: ``path("mcp/", server.async_urls)``."""
        return views.patterns(self, self._url_namespace, is_async=True)

    @property
    def metadata_urls(self) -> views.Patterns:
        """The protected resource's metadata, for the root of a URLconf: ``path("", server.metadata_urls)``."""
        return views.metadata_patterns(self, self._url_namespace, is_async=False)

    @property
    def async_metadata_urls(self) -> views.Patterns:
        """The same under ASGI."""
        return views.metadata_patterns(self, self._url_namespace, is_async=True)

    # Within ------------------------------------------------------------------------------------------------------

    def _permissions(
        self, name: str, classes: Sequence[Any] | None, given: Sequence[Any] | None, kind: str = "tool"
    ) -> tuple[Maker, ...]:
        if setting("REQUIRE_TOOL_PERMISSIONS") and not is_named(classes, given):
            raise RegistrationError(
                f"{kind} {name!r} has no permissions, so every caller could use it. Say who may: "
                "permission_classes=[…] in its spec, or permissions=[…] here; [] is everybody. "
                "MCPACE['REQUIRE_TOOL_PERMISSIONS'] = False lifts this"
            )
        return compiled(classes, given, f"{kind} {name!r}")

    def _unknown(self, given: UnknownArguments | str | None) -> UnknownArguments:
        what = setting("UNKNOWN_ARGUMENTS") if given is None else given
        return chosen(UnknownArguments, what, "unknown_arguments")

    def _add(
        self,
        name: str,
        runs: Any,
        function: Callable[..., Any] | None,
        unknown: UnknownArguments,
        limits: Limits,
        makers: tuple[Maker, ...],
        output_format: OutputFormat | str | None,
        max_result_bytes: int | _Unset | None,
        dispatch_timeout: float | _Unset | None,
        *,
        description: str | None,
        **listed: Any,
    ) -> SpecTool:
        form = chosen(OutputFormat, output_format or setting("DEFAULT_OUTPUT_FORMAT"), "output_format")
        most = setting("MAX_RESULT_BYTES") if isinstance(max_result_bytes, _Unset) else max_result_bytes
        limit = setting("DISPATCH_TIMEOUT") if isinstance(dispatch_timeout, _Unset) else dispatch_timeout
        counted, own = _split(limits)
        tool: Any = SpecTool(
            name=name,
            description=description or _told(function),
            runs=runs,
            writer=Writer(form, most, name),
            unknown=unknown,
            limits=counted,
            guards=_guards(makers, own, f"tool {name!r}", limit),
            acting=self._acting,
            **listed,
        )
        if name in self.registry.tools:
            raise RegistrationError(f"tool {name!r} is registered already")
        self.registry.add_tool(tool)
        return cast("SpecTool", tool)


def _split(limits: Limits) -> tuple[tuple[CacheRateLimit, ...], list[Any]]:
    """Those that Django's cache counts, and the runtime's own."""
    cached = tuple(one for one in limits if isinstance(one, CacheRateLimit))
    return cached, [one for one in limits if not isinstance(one, CacheRateLimit)]


def _guards(makers: tuple[Maker, ...], limits: list[Any], what: str, timeout: float | None = None) -> Guards:
    """What the runtime looks at before a call begins."""
    scopes = scopes_of(makers)
    return guards([requires(*scopes)] if scopes else [], limits, timeout, what=what)


def _auth_settings(backend: Any) -> AuthSettings:
    return AuthSettings.model_validate(
        {
            "issuer_url": backend.authorization_servers[0],
            "resource_server_url": backend.resource_url,
            "required_scopes": list(backend.required_scopes) or None,
        }
    )


def _check_long_way(name: str, unknown: UnknownArguments) -> None:
    if unknown is UnknownArguments.PASSTHROUGH:
        raise RegistrationError(
            f"tool {name!r}: PASSTHROUGH is for specs of a service, a serializer, a row and permissions; "
            "djangorestframework-services, which runs the others, has no such thing"
        )


def _told(function: Callable[..., Any] | None) -> str:
    import inspect

    return inspect.getdoc(function) or "" if function is not None else ""
