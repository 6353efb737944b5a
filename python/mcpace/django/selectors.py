"""Compiles a ``SelectorSpec``: its rows are filtered, ordered, divided into pages and rendered.

Design constraint: the database counts the rows and selects those of a page. A list without pages that is longer than a
page may be is refused, never silently truncated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from django.db.models import Manager, Model, QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework_services import SelectorKind, filterset_to_json_schema

from mcpace.django.failures import invalid_arguments, not_found
from mcpace.django.keyword_injection import Bound, Seeds
from mcpace.django.outputs import Renderer, Write, Written
from mcpace.django.permissions import Maker, check, check_object
from mcpace.django.request import Call
from mcpace.django.schemas import list_schema, object_schema, output_schema
from mcpace.django.specs import merge_schemas, parameters_of
from mcpace.django.transactions import in_transaction, transaction_for
from mcpace.server.errors import RegistrationError, ToolError

DEFAULT_PAGE = 100
UNIQUE = frozenset({"pk", "-pk", "?"})
"""Orderings to which no primary key is added: unique ones, and the random one."""


class Selector:
    """A compiled ``SelectorSpec``. ``run`` is called in the thread of the call."""

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
        # Reading needs no transaction but those of the project's ATOMIC_REQUESTS.
        self._around = transaction_for(spec.selector, atomic=False)
        self._rows = PermittedRows(name, spec, seeds, f"tool {name!r}")
        self._renderer = Renderer(spec.output_serializer)
        self._is_list = spec.kind is SelectorKind.LIST
        self._pages = Pages(name, max_page, ordering, is_paged=paginate, is_list=self._is_list)
        self.input_schema = merge_schemas(self._rows.selected.schema, self._pages.schema)
        self.names = self._rows.selected.names | self._pages.names
        self.output_schema = self._output_schema(spec, paginate)

    def run(self, call: Call, write: Write) -> Written:
        """Runs the selector and writes an object, a page, or ``{"items": […]}``."""
        with in_transaction(self._around):
            permissions = check(self._permissions, call)
            if self._is_list:
                return write(self._pages.page(self._rows.rows(call), call, self._renderer))
            return write(self._renderer.render_one(self._rows.single_row(call, permissions), call))

    def _output_schema(self, spec: Any, paginate: bool) -> dict[str, Any] | None:
        found = output_schema(spec)
        if found is None:
            return None
        item = found.get("items", found) if found.get("type") == "array" else found
        return (
            list_schema(item, paginate=paginate) if self._is_list else object_schema(item, can_be_empty=spec.allow_none)
        )


class PermittedRows:
    """The rows of a selector that a caller may see, after object permissions and preconditions."""

    def __init__(self, name: str, spec: Any, seeds: Seeds, label: str) -> None:
        self._name = name
        self._allows_none = spec.allow_none
        self.selected = SelectedRows(spec, seeds, label)
        self._preconditions = [Bound(one, seeds.by_name, label=label) for one in spec.preconditions or ()]

    def rows(self, call: Call) -> Any:
        """All rows: a queryset, or any other value that the selector returns."""
        rows = self.selected.rows(call)
        self._check_preconditions(call, {"collection": rows})
        return rows

    def single_row(self, call: Call, permissions: list[Any]) -> Any:
        """The single row. Raises where there is none, unless the spec allows ``None``."""
        instance = self.selected.first_row(call)
        if instance is None:
            if self._allows_none:
                return None
            raise not_found(self._name)
        if isinstance(instance, Model):
            check_object(permissions, call, instance)
        self._check_preconditions(call, {"instance": instance})
        return instance

    def _check_preconditions(self, call: Call, values: Mapping[str, Any]) -> None:
        for precondition in self._preconditions:
            precondition(call, values)


class SelectedRows:
    """The rows of a selector, with the filters and the queryset options of its spec applied."""

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
        self.schema = merge_schemas(filled, self._own.schema)
        if self._provider is not None:
            # The provider may fill in any parameter, so the caller need not send it.
            self.schema.pop("required", None)
        self.names = frozenset(self._own.names) | self._filter_names

    def rows(self, call: Call) -> Any:
        """All rows: a queryset, or any other value that the selector returns."""
        arguments = call.arguments
        provided = self._provider(call, {}) if self._provider is not None else {}
        given = {name: arguments[name] for name in self._own.names if name in arguments}
        own = {key: value for key, value in provided.items() if key in self._own.names}
        values = self._own.validate(given | own)
        rows = self._selector(call, values | provided)
        if isinstance(rows, Manager):
            rows = rows.all()
        return self._apply_spec(rows, call) if isinstance(rows, QuerySet) else rows

    def first_row(self, call: Call) -> Any:
        """The first row, or ``None``."""
        rows = self.rows(call)
        if isinstance(rows, QuerySet):
            return rows.first()
        if isinstance(rows, list | tuple):
            return rows[0] if rows else None
        return rows

    def _apply_spec(self, rows: Any, call: Call) -> Any:
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
        """The requested rows, ordered and rendered."""
        rows = self._apply_ordering(rows, call.arguments)
        if not self._is_paged:
            return {"items": renderer.render_many(all_rows(rows, self._most), call)}
        rows = _in_total_order(rows) if isinstance(rows, QuerySet) else list(rows)
        limit = _positive_integer(call.arguments, "limit", DEFAULT_PAGE)
        limit = limit if self._most is None else min(limit, self._most)
        total = rows.count() if isinstance(rows, QuerySet) else len(rows)
        pages = max(1, -(-total // limit))
        # A request beyond the last page gets the last page, and the result contains its number.
        number = min(_positive_integer(call.arguments, "page", 1), pages)
        start = (number - 1) * limit
        items = renderer.render_many(rows[start : start + limit], call)
        return {"items": items, "page": number, "totalPages": pages, "hasNext": number < pages}

    def _apply_ordering(self, rows: Any, arguments: Mapping[str, Any]) -> Any:
        order = arguments.get("ordering") if self._ordering else None
        if order is None:
            return rows
        if order not in self._ordering:
            raise invalid_arguments({"ordering": [f"{order!r} is none of {', '.join(self._ordering)}"]})
        if isinstance(rows, QuerySet):
            # Rows of equal rank must not change places between two pages.
            return rows.order_by(order, *([] if order.lstrip("-") == "pk" else ["pk"]))
        raise ToolError("these rows can't be ordered: the selector gives no queryset")


def all_rows(rows: Any, most: int | None) -> list[Any]:
    """A list of all rows. Raises ``ToolError`` where there are more than ``most``."""
    if most is None:
        return list(rows)
    first = list(rows[: most + 1]) if isinstance(rows, QuerySet) else list(islice(rows, most + 1))
    if len(first) > most:
        raise ToolError(f"there are more than {most} rows, the most that is given at once: narrow it down")
    return first


def _in_total_order(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Rows in a total order. Otherwise a row could be on two pages, and another on none."""
    query = rows.query
    if query.is_sliced or query.combinator or query.distinct_fields or query.extra_order_by or rows._fields is not None:
        # A queryset that can no longer be ordered, or whose results aren't model instances.
        return rows
    by_default = rows.model._meta.ordering if query.default_ordering and not query.group_by else ()
    names = query.order_by or by_default
    if any(one in UNIQUE for one in names if isinstance(one, str)):
        return rows
    return rows.order_by(*names, "pk")


def _positive_integer(arguments: Mapping[str, Any], name: str, default: int) -> int:
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise invalid_arguments({name: ["a whole number from 1 on is needed"]})
    return value
