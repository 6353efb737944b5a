"""``MCPServer`` for Django: specs in, a server out.

Design constraint: this module is only the public surface. Other modules compile the specs; everything that isn't
specific to Django is inherited from :class:`mcpace.MCPServer`, including the decorators for plain functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, Unpack

from rest_framework_services import SelectorKind, SelectorSpec, ServiceSpec

from mcpace.django import auth as backends
from mcpace.django import request_cycle, views
from mcpace.django.access_terms import (
    ResourceOptions,
    SelectorOptions,
    Terms,
    ToolOptions,
    UseOptions,
    max_rows,
    output_format,
    terms,
    unknown_arguments,
)
from mcpace.django.calling import call_in_process, check_plain, is_asynchronous, raise_for_error
from mcpace.django.choices import ArgumentBinding, UnknownArguments, parse_choice
from mcpace.django.conf import setting
from mcpace.django.dispatcher_fallback import DispatchedSpec
from mcpace.django.keyword_injection import Seeds
from mcpace.django.outputs import Writer
from mcpace.django.plain import with_request_cycle
from mcpace.django.request import Site
from mcpace.django.resources import guarded_prompt, reader
from mcpace.django.selectors import Selector
from mcpace.django.services import Service
from mcpace.django.specs import check_selector, check_service, is_compiled_selector, is_compiled_service
from mcpace.django.stores import limiter_options
from mcpace.django.tool import SpecTool
from mcpace.server.app import MCPServer as PlainServer
from mcpace.server.errors import RegistrationError
from mcpace.server.registration.path_security import DEFAULT_RESOURCE_SECURITY
from mcpace.server.registration.prompts import Prompt
from mcpace.server.registration.resources import FunctionResource, ResourceTemplate
from mcpace.server.registration.tools import check_name
from mcpace.server.registration.uri_template import UriTemplate
from mcpace.server.running.prepared import Prepared
from mcpace.types import CallToolResult, InputRequiredResult

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


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
        """``auth``: an authentication backend (:class:`DjangoOAuthToolkit`, :class:`TokenBackend`, :class:`AllowAny`)
        or a token verifier; by default the backend that the setting ``AUTH_BACKEND`` names. ``pool_seeds``: additional
        keywords for services and selectors, by name; each is a function that takes any of ``user``, ``request`` and
        ``view``. The other options are those of :class:`mcpace.MCPServer`."""
        if options.get("token_verifier") is not None:
            raise TypeError("token_verifier: a Django server takes a verifier as auth=…, or in auth=TokenBackend(…)")
        self.backend = backends.backend(auth)
        self._url_namespace = url_namespace
        self._pool_seeds = dict(pool_seeds or {})
        self._seeds = Seeds(self._pool_seeds)
        self._hosted: dict[bool, Any] = {}
        """The endpoint in this process, by whether its views are asynchronous."""
        resource = getattr(self.backend, "resource_url", None) or setting("RESOURCE_URL")
        if isinstance(self.backend, backends.AllowAny):
            self._site = Site(self.backend.user, resource)
        else:
            self._site = Site(None, resource)
            options |= {"auth": backends.settings_of(self.backend), "token_verifier": self.backend}
        options = limiter_options(setting("LIMITER"), "LIMITER") | options
        super().__init__(name, **options)

    # Tools -------------------------------------------------------------------------------------------------------

    def register_service_tool(
        self,
        *,
        name: str,
        spec: ServiceSpec[Any, Any, Any],
        argument_binding: ArgumentBinding | str = ArgumentBinding.BUNDLE,
        **options: Unpack[ToolOptions],
    ) -> SpecTool:
        """Registers a ``ServiceSpec``, an action, as a tool.

        ``permissions`` are checked after the spec's own ``permission_classes``. Options that are not given are read
        from the settings. Raises ``RegistrationError`` where the spec can't be a tool, or where neither the spec nor
        the registration names permissions.
        """
        check_name(name)
        check_service(spec, name)
        on = self._terms("tool", name, options, ToolOptions, spec.permission_classes, spec.service)
        unknown = unknown_arguments(options)
        binding = parse_choice(ArgumentBinding, argument_binding, "argument_binding")
        passes = unknown is UnknownArguments.PASSTHROUGH
        runs: Any
        if is_compiled_service(spec):
            runs = Service(name, spec, self._seeds, on.makers, binding=binding, passes_unknown=passes)
        elif passes:
            raise RegistrationError(
                f"tool {name!r}: PASSTHROUGH is for specs of a service, a serializer, a row and permissions; "
                "djangorestframework-services, which runs the others, has no such thing"
            )
        else:
            ignores = unknown is UnknownArguments.IGNORE
            runs = DispatchedSpec(
                name, spec, self._seeds, on.makers,
                binding=binding, ignores_unknown=ignores, pool_seeds=self._pool_seeds,
            )  # fmt: skip
        hints = {"readOnlyHint": False}
        if spec.idempotent is not None:
            hints["idempotentHint"] = spec.idempotent
        return self._add(name, runs, on, options, hints)

    def register_selector_tool(
        self,
        *,
        name: str,
        spec: SelectorSpec[Any, Any],
        paginate: bool = False,
        ordering_fields: Sequence[str] = (),
        **options: Unpack[SelectorOptions],
    ) -> SpecTool:
        """Registers a ``SelectorSpec``, a query, as a tool.

        ``paginate`` adds the arguments ``page`` and ``limit`` and answers with a page; ``ordering_fields`` adds
        ``ordering`` (a filter set's own ``OrderingFilter`` does, too). Raises ``RegistrationError`` as
        :meth:`register_service_tool` does.
        """
        check_name(name)
        check_selector(spec, name)
        on = self._terms("tool", name, options, SelectorOptions, spec.permission_classes, spec.selector)
        unknown = unknown_arguments(options)
        if unknown is UnknownArguments.PASSTHROUGH:
            raise RegistrationError(
                f"tool {name!r}: a selector takes what its signature names; PASSTHROUGH is a service's"
            )
        pages: dict[str, Any] = {
            "paginate": paginate, "ordering": tuple(ordering_fields), "max_page": max_rows(options)
        }  # fmt: skip
        runs: Any
        if is_compiled_selector(spec):
            runs = Selector(name, spec, self._seeds, on.makers, **pages)
        else:
            ignores = unknown is UnknownArguments.IGNORE
            runs = DispatchedSpec(
                name, spec, self._seeds, on.makers, binding=ArgumentBinding.BUNDLE, ignores_unknown=ignores,
                pool_seeds=self._pool_seeds, **pages,
            )  # fmt: skip
        return self._add(name, runs, on, options, {"readOnlyHint": True})

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
        mime_type: str = "application/json",
        **options: Unpack[ResourceOptions],
    ) -> None:
        """Registers a ``SelectorSpec`` as a resource, or as a family of them: the variables of ``uri_template``
        (``invoices://{pk}``) are the selector's arguments."""
        check_selector(selector, name, "register_resource")
        if not is_compiled_selector(selector):
            raise RegistrationError(
                f"resource {name!r}: its selector must be a plain function of named arguments, and its spec no more "
                "than what a row is shown by; register a selector tool for more"
            )
        on = self._terms("resource", name, options, ResourceOptions, selector.permission_classes, selector.selector)
        variables = UriTemplate.parse(uri_template).variable_names
        read = reader(
            name, selector, list(variables), self._seeds, on.makers, output_serializer, on.counted, self._site,
            max_rows(options),
        )  # fmt: skip
        details: dict[str, Any] = {"name": name, "mime_type": mime_type, "guards": on.guards, **on.listed}
        if variables:
            security = self._resource_security or DEFAULT_RESOURCE_SECURITY
            self.registry.add_template(ResourceTemplate.from_function(read, uri_template, security=security, **details))
        else:
            self.registry.add_resource(FunctionResource.from_function(read, uri_template, **details))

    def register_prompt(self, *, name: str, render: Callable[..., Any], **options: Unpack[UseOptions]) -> None:
        """Registers a function as a prompt. The user fills in its parameters; its return value is the messages."""
        on = self._terms("prompt", name, options, UseOptions, None, render)
        function = guarded_prompt(name, self._providers.applied(render), on.makers, on.counted, self._site)
        told = on.listed
        self.add_prompt(
            Prompt.from_function(function, name, told["title"], told["description"], told["icons"], guards=on.guards)
        )

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
        """Calls a tool in this process and thread, on behalf of ``user``, ``principal`` or ``request.user``, which must
        be one user where several are given. Permissions, limits, validation and transaction apply as to a client.

        The call uses the current transaction and connection: in a test or a view, the caller's own. The scopes are
        those of ``principal``, where one is given; the caller of a plain function can only be a ``principal``. Raises
        ``ToolError`` where the call fails, ``Forbidden`` or ``MCPError`` where the caller lacks permission,
        ``TypeError`` where two users are named. Given a context, the method is the official SDK's coroutine.
        """
        if context is not None:
            return super().call_tool(name, arguments, context)
        return call_in_process(self, name, arguments, user=user, principal=principal, request=request)

    async def acall_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        user: Any = None,
        principal: Any = None,
        request: Any = None,
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool as :meth:`call_tool` does, from asynchronous code."""
        if is_asynchronous(self, name):
            check_plain(name, user, request)
            with request_cycle.within_callers_cycle():
                return raise_for_error(await super().acall_tool(name, arguments, principal=principal))
        from asgiref.sync import sync_to_async

        # The thread that Django keeps for synchronous code, because a test's transaction is open there.
        return await sync_to_async(call_in_process)(
            self, name, arguments, user=user, principal=principal, request=request
        )

    def call_tool_sync(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, principal: Any = None
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool as :class:`mcpace.MCPServer` does, on the caller's database connections. A tool's failure is
        returned as a result."""
        with request_cycle.within_callers_cycle():
            return super().call_tool_sync(name, arguments, principal=principal)

    # Serving -----------------------------------------------------------------------------------------------------

    @property
    def urls(self) -> views.Patterns:
        """URL patterns under WSGI: ``path("mcp/", server.urls)``. Replies are JSON, and there are no sessions."""
        return views.patterns(self, self._url_namespace, is_async=False)

    @property
    def async_urls(self) -> views.Patterns:
        """URL patterns under ASGI: ``path("mcp/", server.async_urls)``."""
        return views.patterns(self, self._url_namespace, is_async=True)

    @property
    def metadata_urls(self) -> views.Patterns:
        """URL patterns of the protected resource's metadata under WSGI, for the root of a URLconf:
        ``path("", server.metadata_urls)``."""
        return views.metadata_patterns(self, self._url_namespace, is_async=False)

    @property
    def async_metadata_urls(self) -> views.Patterns:
        """URL patterns of the protected resource's metadata under ASGI."""
        return views.metadata_patterns(self, self._url_namespace, is_async=True)

    # Within ------------------------------------------------------------------------------------------------------

    def __mcpace__(self) -> Prepared:
        prepared = super().__mcpace__()
        if not isinstance(self.backend, backends.AllowAny):
            return prepared
        return replace(prepared, loopback_only=self.backend.loopback_only)

    def _terms(
        self, kind: str, name: str, options: Mapping[str, Any], known: type, classes: Any, function: Any
    ) -> Terms:
        return terms(kind, name, options, known, classes, function, self.__mcpace_core__.guards)

    def _around(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return with_request_cycle(fn)

    def _add(self, name: str, runs: Any, on: Any, options: Mapping[str, Any], hints: Mapping[str, Any]) -> SpecTool:
        listed = {**on.listed, "annotations": {**hints, **(on.listed["annotations"] or {})}}
        tool: Any = SpecTool(
            name=name,
            runs=runs,
            writer=Writer(output_format(options), on.max_result_bytes, name),
            unknown=unknown_arguments(options),
            limits=on.counted,
            guards=on.guards,
            site=self._site,
            **listed,
        )
        if name in self.registry.tools:
            raise RegistrationError(f"tool {name!r} is registered already")
        self.registry.add_tool(tool)
        made: SpecTool = tool
        return made
