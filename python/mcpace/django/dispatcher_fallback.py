"""Runs a spec by the dispatcher of djangorestframework-services, for specs that use features which aren't compiled
here.

Design constraint: the interface is that of a compiled spec, so no other module distinguishes the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework_services import (
    ArgumentBinding as Binding,
)
from rest_framework_services import (
    PoolSeeds,
    SelectorKind,
    ServiceSpec,
    build_offline_context,
    dispatch_spec,
    render_spec_output,
    spec_to_json_schema,
)
from rest_framework_services import (
    UnknownArguments as Unknown,
)

from mcpace.django.choices import ArgumentBinding
from mcpace.django.failures import not_found
from mcpace.django.keyword_injection import Seeds
from mcpace.django.outputs import Renderer, Write, Written
from mcpace.django.permissions import Maker, check, check_object
from mcpace.django.request import Call
from mcpace.django.schemas import input_schema, list_schema, object_schema, output_schema
from mcpace.django.selectors import Pages
from mcpace.django.specs import merge_schemas
from mcpace.django.transactions import in_transaction, transaction_for


class DispatchedSpec:
    """A spec that the dispatcher runs."""

    is_async = False
    is_threaded = True
    names = None
    """Unknown here: the dispatcher decides which arguments exist."""

    def __init__(
        self,
        name: str,
        spec: Any,
        seeds: Seeds,
        permissions: tuple[Maker, ...],
        *,
        binding: ArgumentBinding,
        ignores_unknown: bool,
        pool_seeds: Any = None,
        paginate: bool = False,
        ordering: Sequence[str] = (),
        max_page: int | None = None,
    ) -> None:
        self._name = name
        self._spec = spec
        self._permissions = permissions
        self._seeds = PoolSeeds(tuple((pool_seeds or {}).items()))
        is_service = isinstance(spec, ServiceSpec)
        # The dispatcher itself enters the transaction of an atomic spec.
        self._around = transaction_for(spec.service if is_service else spec.selector, atomic=False)
        self._binding = Binding.SPREAD_AUTHOR_WINS if binding is ArgumentBinding.SPREAD_AUTHOR_WINS else Binding.AUTO
        self._unknown = Unknown.IGNORE if ignores_unknown else Unknown.REJECT
        shown = spec.output_selector_spec if is_service else spec
        is_list = shown is not None and shown.kind is SelectorKind.LIST and not is_service
        self._pages = Pages(name, max_page, ordering, is_paged=paginate, is_list=is_list)
        self._shows_pages = is_list
        known = frozenset(seeds.names)
        found = input_schema(spec, supplied=known, argument_binding=self._binding)
        target = self._target_schema(spec, known) if is_service else {}
        self.input_schema = merge_schemas(target, found, self._pages.schema)
        self.output_schema = self._output_schema(spec, is_list, paginate)

    def run(self, call: Call, write: Write) -> Written:
        """Runs the spec and writes the result. The dispatcher's transaction of an atomic spec has ended before the
        result is written."""
        called = getattr(call.request, "_request", call.request)
        context = build_offline_context(call.user, call.arguments, action=self._name, http_request=called)
        context.request.auth = call.auth
        own = {name: value for name, value in call.arguments.items() if name not in self._pages.names}

        def guard(spec: Any, context: Any, instance: Any = None) -> None:
            if hasattr(instance, "_meta"):
                check_object(permissions, call, instance)

        with in_transaction(self._around):
            permissions = check(self._permissions, call)
            result = dispatch_spec(
                self._spec,
                user=call.user,
                params=own,
                request=context.request,
                view=context.view,
                pool_seeds=self._seeds,
                argument_binding=self._binding,
                unknown_arguments=self._unknown,
                on_target_resolved=guard,
                many_as_argument=True,
                progress=call.progress,
            )
            if result.kind == "not_found":
                raise not_found(self._name)
            if self._shows_pages:
                return write(self._pages.page(result.value, call, _DispatcherRenderer(self._spec, context)))
            many = result.kind == "list"
            shown = render_spec_output(self._spec, result.value, many=many, view=context.view, request=context.request)
            return write({"items": shown} if many else shown)

    @staticmethod
    def _target_schema(spec: Any, known: frozenset[str]) -> dict[str, Any]:
        target = spec.instance_selector_spec or spec.collection_selector_spec
        return (spec_to_json_schema(target, supplied=known) or {}) if target is not None else {}

    @staticmethod
    def _output_schema(spec: Any, is_list: bool, paginate: bool) -> dict[str, Any] | None:
        found = output_schema(spec)
        if found is None:
            return None
        if found.get("type") == "array" or is_list:
            return list_schema(found.get("items", found), paginate=paginate)
        return object_schema(found, can_be_empty=spec.allow_none)


class _DispatcherRenderer(Renderer):
    """Shows rows as the dispatcher's own renderer does."""

    def __init__(self, spec: Any, context: Any) -> None:
        super().__init__(None)
        self._spec = spec
        self._called = context

    def render_many(self, values: Any, call: Call) -> list[Any]:
        """Plain values of all rows."""
        shown = render_spec_output(
            self._spec,
            values,
            many=True,
            view=self._called.view,
            request=self._called.request,
            extras={"page": values},
        )
        return list(shown)
