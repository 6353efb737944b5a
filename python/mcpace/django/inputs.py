"""From a call's arguments to validated data, by a REST framework serializer.

Making a serializer costs far more than running it: its fields are copied one by one. So one is kept and used again,
for one call at a time; before it goes back, it and all its fields are put into the state that they were made in. One of
plain fields isn't even run where that is certain to change nothing (:mod:`.fast_serializer`).

Design constraint: what a call leaves on a serializer or a field, nobody after it sees. A class that decides something
when it is made (its own ``__init__``, ``get_fields`` or the like, choices of its model's that are a function, a limit
to the rows of a relation) is made anew for each call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.fields import Field

from mcpace.django.fast_serializer import compiled, is_settled
from mcpace.django.request import Call

KEPT = 64
"""Serializers of a kind that wait for the next call."""

# Where a class of an author's could look at the call while it is made.
_MAKING = ("__init__", "__new__", "__deepcopy__", "bind", "many_init")
_FIELDS = ("fields", "get_fields", "_writable_fields", "_readable_fields", "get_field_names", "build_field")
_READING = ("is_valid", "validated_data", "errors", "initial_data", "context")
_WRITING = ("data", "context")


class Kept:
    """Serializers of one class, lent to one call at a time. Thread-safe."""

    def __init__(self, serializer: type[Any], *, reading: bool, partial: bool = False, many: bool = False) -> None:
        self._class = serializer
        self._options: dict[str, Any] = {"data": {}, "partial": partial} if reading else {"many": True} if many else {}
        self._waiting: deque[_Restored] = deque(maxlen=KEPT)
        self.is_reused = is_reusable(serializer, reading=reading)
        """Whether instances serve more than one call."""

    def take(self, context: Mapping[str, Any]) -> _Restored:
        """One that nobody else has, to be given back."""
        try:
            lent = self._waiting.pop()
        except IndexError:
            lent = _Restored(self._class(**self._options))
        lent.serializer._context = context
        return lent

    def give_back(self, lent: _Restored) -> None:
        """Takes it back, in the state that it was made in: whatever the call left on it is gone."""
        lent.restore()
        self._waiting.append(lent)


class _Restored:
    """A serializer, and the state that it was made in."""

    __slots__ = ("_lists", "_querysets", "_states", "serializer")

    def __init__(self, serializer: Any) -> None:
        self.serializer = serializer
        # Looked at once, so that what is made lazily belongs to the state.
        for node in _nodes(serializer):
            for name in ("fields", "_writable_fields", "_readable_fields"):
                getattr(node, name, None)
        serializer.__dict__.pop("initial_data", None)
        nodes = list(_nodes(serializer))
        self._states = [(node.__dict__, dict(node.__dict__)) for node in nodes]
        self._states += [
            (node.fields.fields, dict(node.fields.fields)) for node in nodes if isinstance(node, serializers.Serializer)
        ]
        values = [value for node in nodes for value in node.__dict__.values()]
        # Validators, above all.
        self._lists = [(value, list(value)) for value in values if isinstance(value, list)]
        self._querysets = [value for value in values if isinstance(value, QuerySet)]

    def restore(self) -> None:
        """Puts all of it back."""
        for now, then in self._states:
            now.clear()
            now.update(then)
        for had, has in self._lists:
            had[:] = has
        for queryset in self._querysets:
            # Whoever looked through it has its rows kept on it.
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
        """What a caller may send."""
        self.sources = frozenset(field.source for field in writable)
        """What validated data has, as far as the fields say."""
        every = {text for field in fields.values() for text in (field.field_name, field.source)}
        self.declared = frozenset(every | {text.partition(".")[0] for text in every})
        """All names that the fields stand for, those that nobody may send among them."""
        self.is_plain = not any(_overrides(serializer, name, serializers.Serializer) for name in _CHANGING)
        """Whether validated data has no other keys."""
        self.quick = compiled(serializer, partial=partial) if self._kept.is_reused else None
        """Reads what surely fits, and that alone, where that can be known."""

    def read(self, arguments: Mapping[str, Any], call: Call, instance: Any = None) -> Any:
        """The validated data. Raises REST framework's ``ValidationError``."""
        if self.quick is not None and (data := self.quick(arguments)) is not None:
            return data
        kept = self._kept
        if not kept.is_reused:
            return self.bound(arguments, call, instance).validated_data
        lent = kept.take(call.context())
        try:
            serializer = lent.serializer
            serializer.instance = instance
            serializer.initial_data = arguments
            # What `is_valid` calls, which nobody has overridden.
            return serializer.run_validation(arguments)
        finally:
            kept.give_back(lent)

    def bound(self, arguments: Mapping[str, Any], call: Call, instance: Any = None) -> Any:
        """A serializer of this call's own, validated."""
        serializer = self._class(instance, data=arguments, partial=self._partial, context=call.context())
        serializer.is_valid(raise_exception=True)
        return serializer


_CHANGING = ("validate", "to_internal_value", "run_validation", "is_valid", "validated_data")


def is_reusable(serializer: type[Any], *, reading: bool) -> bool:
    """Whether an instance may serve more than one call: nothing of an author's runs while it is made."""
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
            _is_made_plainly(type(node)) and is_settled(node) and not (reading and _has_limited_rows(node))
            for node in _nodes(made)
        )
    except Exception:
        # Whatever is wrong with it is said where it is used.
        return False


def _nodes(serializer: Any) -> Iterator[Any]:
    """A serializer, its fields, and theirs."""
    yield serializer
    children = list(serializer.fields.values()) if isinstance(serializer, serializers.Serializer) else []
    for name in ("child", "child_relation"):
        child = serializer.__dict__.get(name)
        if isinstance(child, Field):
            children.append(child)
    for child in children:
        yield from _nodes(child)


def _is_made_plainly(kind: type[Any]) -> bool:
    names = (*_MAKING, *_FIELDS) if issubclass(kind, serializers.BaseSerializer) else _MAKING
    return not any(_is_authors(kind, name) for name in names)


def _has_limited_rows(node: Any) -> bool:
    """Whether REST framework asks the model, whenever it makes the serializer, which rows a relation allows."""
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
