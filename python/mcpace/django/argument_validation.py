"""Validates a call's arguments with a REST framework serializer.

Constructing a serializer costs far more than running it, because its fields are copied one by one. Instances are
therefore pooled and lent to one call at a time. Before an instance is returned to the pool, it and all its fields are
restored to their initial state. A serializer of plain fields isn't even run where a compiled reader is certain to give
the same data (:mod:`.fast_serializer`).

Design constraint: no call sees what an earlier call left on a serializer or a field. A class whose construction may
depend on the call (its own ``__init__``, ``get_fields`` or the like, choices of its model that are a function, a limit
to the rows of a relation) is instantiated for each call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.fields import Field

from mcpace.django.fast_serializer import compile_reader, is_settled
from mcpace.django.request import Call

KEPT = 64
"""Maximum number of pooled instances of one serializer class."""

# Methods in which an author's class could look at the call during construction.
_MAKING = ("__init__", "__new__", "__deepcopy__", "bind", "many_init")
_FIELDS = ("fields", "get_fields", "_writable_fields", "_readable_fields", "get_field_names", "build_field")
_READING = ("is_valid", "validated_data", "errors", "initial_data", "context")
_WRITING = ("data", "context")


class Kept:
    """A pool of serializers of one class, each lent to one call at a time. Thread-safe."""

    def __init__(self, serializer: type[Any], *, reading: bool, partial: bool = False, many: bool = False) -> None:
        self._class = serializer
        self._options: dict[str, Any] = {"data": {}, "partial": partial} if reading else {"many": True} if many else {}
        self._waiting: deque[_Restored] = deque(maxlen=KEPT)
        self.is_reused = is_reusable(serializer, reading=reading)
        """Whether an instance may serve more than one call."""

    def take(self, context: Mapping[str, Any]) -> _Restored:
        """Lends an instance that no other call uses. The caller gives it back."""
        try:
            lent = self._waiting.pop()
        except IndexError:
            lent = _Restored(self._class(**self._options))
        lent.serializer._context = context
        return lent

    def give_back(self, lent: _Restored) -> None:
        """Returns an instance to the pool after restoring its initial state."""
        lent.restore()
        self._waiting.append(lent)


class _Restored:
    """A serializer with a copy of its initial state."""

    __slots__ = ("_lists", "_querysets", "_states", "serializer")

    def __init__(self, serializer: Any) -> None:
        self.serializer = serializer
        # Evaluates the lazy attributes, so that they belong to the initial state.
        for node in _walk_fields(serializer):
            for name in ("fields", "_writable_fields", "_readable_fields"):
                getattr(node, name, None)
        serializer.__dict__.pop("initial_data", None)
        nodes = list(_walk_fields(serializer))
        self._states = [(node.__dict__, dict(node.__dict__)) for node in nodes]
        self._states += [
            (node.fields.fields, dict(node.fields.fields)) for node in nodes if isinstance(node, serializers.Serializer)
        ]
        values = [value for node in nodes for value in node.__dict__.values()]
        # Lists of validators, above all.
        self._lists = [(value, list(value)) for value in values if isinstance(value, list)]
        self._querysets = [value for value in values if isinstance(value, QuerySet)]

    def restore(self) -> None:
        """Restores the initial state."""
        for now, then in self._states:
            now.clear()
            now.update(then)
        for had, has in self._lists:
            had[:] = has
        for queryset in self._querysets:
            # Iterating over a queryset caches its rows on it.
            queryset._result_cache = None
            queryset._prefetch_done = False


class Reader:
    """Validates arguments by a serializer."""

    def __init__(self, serializer: type[Any], *, partial: bool = False) -> None:
        self._class = serializer
        self._partial = partial
        self._kept = Kept(serializer, partial=partial, reading=True)
        made = serializer(data={}, partial=partial)
        fields = getattr(made, "fields", {})
        writable = [field for field in fields.values() if not field.read_only]
        self.names = frozenset(field.field_name for field in writable if not isinstance(field, serializers.HiddenField))
        """Names of the arguments that a caller may send."""
        self.sources = frozenset(field.source for field in writable)
        """Keys of the validated data, as far as the fields determine them."""
        every = {text for field in fields.values() for text in (field.field_name, field.source)}
        self.declared = frozenset(every | {text.partition(".")[0] for text in every})
        """All names that the fields use, including those that a caller may not send."""
        self.is_plain = not any(_overrides(serializer, name, serializers.Serializer) for name in _CHANGING)
        """Whether validated data has no keys but ``sources``."""
        self.fast_path = compile_reader(serializer, partial=partial) if self._kept.is_reused else None
        """The compiled reader, which returns data only for arguments that are certain to be valid; ``None`` where the
        class can't be compiled."""

    def read(self, arguments: Mapping[str, Any], call: Call, instance: Any = None) -> Any:
        """The validated data. Raises REST framework's ``ValidationError``."""
        if self.fast_path is not None and (data := self.fast_path(arguments)) is not None:
            return data
        kept = self._kept
        if not kept.is_reused:
            return self.bound(arguments, call, instance).validated_data
        lent = kept.take(call.context())
        try:
            serializer = lent.serializer
            serializer.instance = instance
            serializer.initial_data = arguments
            # `is_valid` calls `run_validation`. A class that overrides `is_valid` isn't reused.
            return serializer.run_validation(arguments)
        finally:
            kept.give_back(lent)

    def bound(self, arguments: Mapping[str, Any], call: Call, instance: Any = None) -> Any:
        """A validated serializer that only this call uses."""
        serializer = self._class(instance, data=arguments, partial=self._partial, context=call.context())
        serializer.is_valid(raise_exception=True)
        return serializer


_CHANGING = ("validate", "to_internal_value", "run_validation", "is_valid", "validated_data")


def is_reusable(serializer: type[Any], *, reading: bool) -> bool:
    """Whether an instance may serve more than one call, because no code of an author's runs during construction."""
    if not issubclass(serializer, serializers.Serializer):
        return False
    if any(_overrides(serializer, name, serializers.Serializer) for name in (_READING if reading else _WRITING)):
        return False
    meta = getattr(serializer, "Meta", None)
    if not reading and getattr(meta, "list_serializer_class", None) is not None:
        return False
    try:
        made = serializer(data={}) if reading else serializer()
        return all(
            _is_construction_plain(type(node)) and is_settled(node) and not (reading and _has_limited_rows(node))
            for node in _walk_fields(made)
        )
    except Exception:
        # A fault of the class is reported where the class is used.
        return False


def _walk_fields(serializer: Any) -> Iterator[Any]:
    """A serializer and all its fields, recursively."""
    yield serializer
    children = list(serializer.fields.values()) if isinstance(serializer, serializers.Serializer) else []
    for name in ("child", "child_relation"):
        child = serializer.__dict__.get(name)
        if isinstance(child, Field):
            children.append(child)
    for child in children:
        yield from _walk_fields(child)


def _is_construction_plain(kind: type[Any]) -> bool:
    names = (*_MAKING, *_FIELDS) if issubclass(kind, serializers.BaseSerializer) else _MAKING
    return not any(_is_authors(kind, name) for name in names)


def _has_limited_rows(node: Any) -> bool:
    """Whether a relation of the model limits its rows. REST framework reads that limit at each construction."""
    if not isinstance(node, serializers.ModelSerializer):
        return False
    sources = {field.source for field in node.fields.values() if not field.read_only}
    relations = [one for one in node.Meta.model._meta.get_fields() if one.name in sources and one.remote_field]
    return any(getattr(one.remote_field, "limit_choices_to", None) for one in relations)


def _is_authors(kind: type[Any], name: str) -> bool:
    owner = next((base for base in kind.__mro__ if name in base.__dict__), None)
    return owner is not None and owner is not object and not owner.__module__.startswith("rest_framework.")


def _overrides(kind: type[Any], name: str, base: type[Any]) -> bool:
    return getattr(kind, name, None) is not getattr(base, name, None) and _is_authors(kind, name)
