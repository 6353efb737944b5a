"""A ``SelectorSpec`` compiled: what it finds, narrowed, ordered, cut into pages and shown.

Design constraint: a page is counted and cut by the database. A list that isn't paged and is longer than a page may be
is refused: it is never cut without saying so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from django.db.models import Manager, Model, QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework_services import SelectorKind, filterset_to_json_schema

from mcpace.django.failures import invalid, not_found
from mcpace.django.keyword_injection import Bound, Seeds
from mcpace.django.outputs import Renderer, Write, Written
from mcpace.django.permissions import Maker, check, check_object
from mcpace.django.request import Call
from mcpace.django.schemas import of_list, of_object, output_schema
from mcpace.django.specs import merged, parameters_of
from mcpace.django.transactions import around, entered
from mcpace.server.errors import RegistrationError, ToolError

DEFAULT_PAGE = 100
UNIQUE = frozenset({"pk", "-pk", "?"})
"""Orders that need nothing more (or want none)."""


class Selector:
    """See the module. ``run`` is called in the thread that the call has."""

    is_async = False
    is_threaded = True

    def __init__(
        self,
        name: str,
        spec: Any,
        seeds: Seeds,
        permissions: tuple[Maker, ...],
        *,
        paginate: bool,
        ordering: Sequence[str],
        max_page: int | None,
    ) -> None:
        self._permissions = permissions
        # Reading needs no transaction of its own: only the project's.
        self._around = around(spec.selector, atomic=False)
        self._found = Found(name, spec, seeds, f"tool {name!r}")
        self._renderer = Renderer(spec.output_serializer)
        self._is_list = spec.kind is SelectorKind.LIST
        self._pages = Pages(name, max_page, ordering, is_paged=paginate, is_list=self._is_list)
        self.input_schema = merged(self._found.shaped.schema, self._pages.schema)
        self.names = self._found.shaped.names | self._pages.names
        self.output_schema = self._output_schema(spec, paginate)

    def run(self, call: Call, write: Write) -> Written:
        """The result: of an object, a page, or ``{"items": […]}``."""
        with entered(self._around):
            permissions = check(self._permissions, call)
            if self._is_list:
                return write(self._pages.page(self._found.rows(call), call, self._renderer))
            return write(self._renderer.one(self._found.one(call, permissions), call))

    def _output_schema(self, spec: Any, paginate: bool) -> dict[str, Any] | None:
        found = output_schema(spec)
        if found is None:
            return None
        item = found.get("items", found) if found.get("type") == "array" else found
        return of_list(item, paginate=paginate) if self._is_list else of_object(item, can_be_empty=spec.allow_none)


class Found:
    """What a caller may see of a selector's: all rows, or the one, held to permissions and to what must be true."""

    def __init__(self, name: str, spec: Any, seeds: Seeds, label: str) -> None:
        self._name = name
        self._allows_none = spec.allow_none
        self.shaped = Shaped(spec, seeds, label)
        self._preconditions = [Bound(one, seeds.by_name, label=label) for one in spec.preconditions or ()]

    def rows(self, call: Call) -> Any:
        """All of them: a queryset, or whatever else the selector gives."""
        rows = self.shaped.rows(call)
        self._meets(call, {"collection": rows})
        return rows

    def one(self, call: Call, permissions: list[Any]) -> Any:
        """The one row; ``None`` only where the spec allows that. Raises where there is none."""
        instance = self.shaped.first(call)
        if instance is None:
            if self._allows_none:
                return None
            raise not_found(self._name)
        if isinstance(instance, Model):
            check_object(permissions, call, instance)
        self._meets(call, {"instance": instance})
        return instance

    def _meets(self, call: Call, values: Mapping[str, Any]) -> None:
        for precondition in self._preconditions:
            precondition(call, values)


class Shaped:
    """A selector's rows, as its spec shapes them."""

    def __init__(self, spec: Any, seeds: Seeds, label: str) -> None:
        self._spec = spec
        provided = spec.kwargs
        self._provider = Bound(provided, seeds.by_name, label=label) if provided is not None else None
        self._own = parameters_of(spec.selector, seeds.names, label)
        self._selector = Bound(spec.selector, seeds.by_name, label=label)
        self._filters: Any = spec.filter_set
        filters = filterset_to_json_schema(self._filters) if self._filters is not None else {}
        self._filter_names = frozenset(filters)
        filled = {"properties": filters}
        self.schema = merged(filled, self._own.schema)
        if self._provider is not None:
            # What the provider fills may be left out.
            self.schema.pop("required", None)
        self.names = frozenset(self._own.names) | self._filter_names

    def rows(self, call: Call) -> Any:
        """All of them: a queryset, or whatever else the selector gives."""
        arguments = call.arguments
        provided = self._provider(call, {}) if self._provider is not None else {}
        given = {name: arguments[name] for name in self._own.names if name in arguments}
        own = {key: value for key, value in provided.items() if key in self._own.names}
        values = self._own.validate(given | own)
        rows = self._selector(call, values | provided)
        if isinstance(rows, Manager):
            rows = rows.all()
        return self._narrowed(rows, call) if isinstance(rows, QuerySet) else rows

    def first(self, call: Call) -> Any:
        """The one row, or ``None``."""
        rows = self.rows(call)
        if isinstance(rows, QuerySet):
            return rows.first()
        if isinstance(rows, list | tuple):
            return rows[0] if rows else None
        return rows

    def _narrowed(self, rows: Any, call: Call) -> Any:
        spec = self._spec
        if spec.select_related:
            rows = rows.select_related(*spec.select_related)
        if spec.prefetch_related:
            rows = rows.prefetch_related(*spec.prefetch_related)
        if spec.annotations:
            rows = rows.annotate(**spec.annotations)
        if spec.extend_queryset is not None:
            rows = spec.extend_queryset(rows, call.view, call.request)
        if self._filters is None:
            return rows
        data = {name: value for name, value in call.arguments.items() if name in self._filter_names}
        filtered = self._filters(data=data, queryset=rows, request=call.request)
        if not filtered.is_valid():
            raise ValidationError({name: list(errors) for name, errors in filtered.errors.items()})
        return filtered.qs


class Pages:
    """Order and pages of a list: ``ordering``, ``page`` and ``limit`` among the arguments."""

    def __init__(self, name: str, most: int | None, ordering: Sequence[str], *, is_paged: bool, is_list: bool) -> None:
        if (is_paged or ordering) and not is_list:
            raise RegistrationError(
                f"tool {name!r}: paginate and ordering_fields are of a LIST, and its spec is not one"
            )
        self._most = most
        self._is_paged = is_paged
        self._ordering = tuple(order for field in ordering for order in (field, f"-{field}"))
        properties: dict[str, Any] = {}
        if ordering:
            properties["ordering"] = {
                "type": "string", "enum": list(self._ordering), "description": "What to order by; - is descending."
            }  # fmt: skip
        if is_paged:
            properties["page"] = {"type": "integer", "minimum": 1, "description": "Which page, from 1."}
            properties["limit"] = {"type": "integer", "minimum": 1, "description": "Rows of a page."}
            if most is not None:
                properties["limit"]["maximum"] = most
        self.schema = {"properties": properties}
        self.names = frozenset(properties)

    def page(self, rows: Any, call: Call, renderer: Renderer) -> dict[str, Any]:
        """The rows that were asked for, shown."""
        rows = self._ordered(rows, call.arguments)
        if not self._is_paged:
            return {"items": renderer.many(all_of(rows, self._most), call)}
        rows = _in_an_order(rows) if isinstance(rows, QuerySet) else list(rows)
        limit = _whole(call.arguments, "limit", DEFAULT_PAGE)
        limit = limit if self._most is None else min(limit, self._most)
        total = rows.count() if isinstance(rows, QuerySet) else len(rows)
        pages = max(1, -(-total // limit))
        # A page past the last is the last: what is served says which it is.
        number = min(_whole(call.arguments, "page", 1), pages)
        start = (number - 1) * limit
        items = renderer.many(rows[start : start + limit], call)
        return {"items": items, "page": number, "totalPages": pages, "hasNext": number < pages}

    def _ordered(self, rows: Any, arguments: Mapping[str, Any]) -> Any:
        order = arguments.get("ordering") if self._ordering else None
        if order is None:
            return rows
        if order not in self._ordering:
            raise invalid({"ordering": [f"{order!r} is none of {', '.join(self._ordering)}"]})
        if isinstance(rows, QuerySet):
            # Rows that are alike must not change places between two pages.
            return rows.order_by(order, *([] if order.lstrip("-") == "pk" else ["pk"]))
        raise ToolError("these rows can't be ordered: the selector gives no queryset")


def all_of(rows: Any, most: int | None) -> list[Any]:
    """The rows. Raises ``ToolError`` where there are more than may be given at once."""
    if most is None:
        return list(rows)
    first = list(rows[: most + 1]) if isinstance(rows, QuerySet) else list(islice(rows, most + 1))
    if len(first) > most:
        raise ToolError(f"there are more than {most} rows, the most that is given at once: narrow it down")
    return first


def _in_an_order(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Rows in an order that tells each from the others: else one may stand on two pages, and another on none."""
    query = rows.query
    if query.is_sliced or query.combinator or query.distinct_fields or query.extra_order_by or rows._fields is not None:
        # What can't be ordered any more, or has no rows of its own.
        return rows
    by_default = rows.model._meta.ordering if query.default_ordering and not query.group_by else ()
    names = query.order_by or by_default
    if any(one in UNIQUE for one in names if isinstance(one, str)):
        return rows
    return rows.order_by(*names, "pk")


def _whole(arguments: Mapping[str, Any], name: str, default: int) -> int:
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise invalid({name: ["a whole number from 1 on is needed"]})
    return value
