"""Compiles a ``ServiceSpec``: arguments, permissions, transaction, validation, the service and its result.

The order is that of REST framework's views: permissions, the row of the call, validation, preconditions, and then the
service.

Design constraint: no signature, field or setting is examined during a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpace.django.argument_validation import Reader
from mcpace.django.choices import ArgumentBinding
from mcpace.django.failures import not_found
from mcpace.django.keyword_injection import OF_A_STEP, Bound, Seeds
from mcpace.django.outputs import Renderer, Write, Written
from mcpace.django.permissions import Maker, check, check_object
from mcpace.django.request import Call
from mcpace.django.schemas import input_schema, object_schema, output_schema
from mcpace.django.selectors import SelectedRows
from mcpace.django.specs import merge_schemas, parameters_of
from mcpace.django.transactions import transaction_for
from mcpace.server.registration.signature import is_async


class Service:
    """A compiled ``ServiceSpec``. ``run`` is called in the thread of the call."""

    def __init__(
        self,
        name: str,
        spec: Any,
        seeds: Seeds,
        permissions: tuple[Maker, ...],
        *,
        binding: ArgumentBinding,
        passes_unknown: bool,
    ) -> None:
        label = f"tool {name!r}"
        self._name = name
        self._permissions = permissions
        self._around = transaction_for(spec.service, atomic=spec.atomic)
        self._reader = Reader(spec.input_serializer, partial=bool(spec.partial)) if spec.input_serializer else None
        self._target = Target(name, spec.instance_selector_spec, seeds) if spec.instance_selector_spec else None
        # Names that PASSTHROUGH never passes on: those of the serializer's fields, and the server's own.
        self._declared = (self._reader.declared if self._reader is not None else frozenset()) | OF_A_STEP
        self._passes_unknown = passes_unknown
        spreads = self._reader is None and binding is ArgumentBinding.SPREAD_AUTHOR_WINS
        self._own = parameters_of(spec.service, seeds.names, label) if spreads else None
        values = self._values(passes_unknown)
        if spec.kwargs is not None:
            # The keys that a provider returns are unknown before it is called.
            values = None
        self._service = Bound(spec.service, seeds.by_name, label=label, values=values)
        self._provider = Bound(spec.kwargs, seeds.by_name, label=label) if spec.kwargs is not None else None
        self._preconditions = [Bound(one, seeds.by_name, label=label) for one in spec.preconditions or ()]
        self._wants_serializer = any("serializer" in one.names for one in [self._service, *self._preconditions])
        shown = spec.output_selector_spec
        serializer = shown.output_serializer if shown is not None else None
        self._renderer = Renderer(serializer)
        self._is_rendered = serializer is not None
        self.is_async = is_async(spec.service)
        self.input_schema = self._schema(spec)
        self.output_schema = object_schema(output_schema(spec), can_be_empty=spec.allow_none)
        self.names = self._argument_names()

    @property
    def is_threaded(self) -> bool:
        """Whether an asynchronous service must run in a thread, because its transaction belongs to one."""
        return self._around is not None

    def run(self, call: Call, write: Write) -> Written:
        """Runs the service and writes the result. An exception of the service is raised, and rolls back the transaction
        of an atomic service. So does a result that can't be rendered or is too long."""
        if self._around is None:
            return self._execute(call, write)
        with self._around():
            return self._execute(call, write)

    def _execute(self, call: Call, write: Write) -> Written:
        keywords = self._prepare_keywords(call)
        if self.is_async:
            from asgiref.sync import async_to_sync

            value = async_to_sync(self._service.function)(**keywords)
        else:
            value = self._service.function(**keywords)
        return write(self._renderer.render_one(value, call) if self._is_rendered else value)

    async def run_async(self, call: Call, write: Write) -> Written:
        """Runs the service on the event loop, without a transaction. The steps that may wait for a database run in a
        thread."""
        from asgiref.sync import sync_to_async

        keywords = await sync_to_async(self._prepare_keywords)(call)
        value = await self._service.function(**keywords)
        return await sync_to_async(lambda: write(self._renderer.render_one(value, call)))()

    def _prepare_keywords(self, call: Call) -> dict[str, Any]:
        return self._keywords(call, check(self._permissions, call))

    def _keywords(self, call: Call, permissions: list[Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        instance = None
        if self._target is not None:
            instance = values["instance"] = self._target.find_row(call)
            check_object(permissions, call, instance)
        self._validate(call, values, instance)
        if self._provider is not None:
            # The author's value takes precedence over a caller's.
            values |= self._provider(call, values)
        for precondition in self._preconditions:
            precondition(call, values)
        return self._service.keywords(call, values)

    def _validate(self, call: Call, values: dict[str, Any], instance: Any) -> None:
        arguments = call.arguments
        if self._reader is not None:
            if self._wants_serializer:
                values["serializer"] = bound = self._reader.bound(arguments, call, instance)
                data = bound.validated_data
            else:
                data = self._reader.read(arguments, call, instance)
            if type(data) is dict or isinstance(data, Mapping):
                values |= {**data, **values} if values else data
            values["data"] = data
        elif self._own is not None:
            names = self._own.names
            values |= self._own.validate({name: arguments[name] for name in names if name in arguments})
        if self._passes_unknown:
            for name, value in arguments.items():
                if name not in self.names and name not in self._declared:
                    values.setdefault(name, value)

    def _values(self, passes_unknown: bool) -> frozenset[str] | None:
        """The names of all values that a call will have; ``None`` where they are unknown."""
        if passes_unknown or (self._reader is not None and not self._reader.is_plain):
            return None
        names: set[str] = set()
        if self._reader is not None:
            names |= {"data", "serializer", *self._reader.sources}
        if self._own is not None:
            names |= set(self._own.parameters.values())
        if self._target is not None:
            names.add("instance")
        return frozenset(names)

    def _argument_names(self) -> frozenset[str]:
        names: set[str] = set()
        if self._reader is not None:
            names |= self._reader.names
        if self._own is not None:
            names |= set(self._own.names)
        if self._target is not None:
            names |= self._target.names
        return frozenset(names)

    def _schema(self, spec: Any) -> dict[str, Any]:
        own = self._own.schema if self._own is not None else input_schema(spec)
        return merge_schemas(self._target.schema if self._target is not None else {}, own)


class Target:
    """Finds the row of a call by a selector, whose parameters are the caller's arguments."""

    def __init__(self, name: str, spec: Any, seeds: Seeds) -> None:
        self._name = name
        self._selected = SelectedRows(spec, seeds, f"tool {name!r}")
        self.schema = self._selected.schema
        self.names = self._selected.names

    def find_row(self, call: Call) -> Any:
        """The row of the call. Raises where there is none."""
        instance = self._selected.first_row(call)
        if instance is None:
            raise not_found(self._name)
        return instance
