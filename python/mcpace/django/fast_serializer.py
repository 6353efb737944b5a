"""Compiles a serializer of plain fields into a reader that gives its validated data without running it.

REST framework's serializers examine each field's options, validators and hooks in each call. Where a class has nothing
but fields for numbers, texts, dates, choices and the like, the validated form of an evidently valid value is known in
advance, or depends on the field alone. The serializer itself handles any other value, including one that it would
convert (``"21"`` for a number), and writes all error messages.

Design constraint: the reader skips no code of an author's. A class is compiled only if its own members are fields and
methods that run after validation, and only if no field could look at the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from math import isfinite
from typing import Any, NamedTuple

from django.core import validators
from rest_framework import serializers
from rest_framework import validators as rest_validators
from rest_framework.fields import Field, empty

Check = Callable[[Any], Any]
"""Returns the validated value; ``None`` where the serializer has to decide."""
Read = Callable[[Mapping[str, Any]], dict[str, Any] | None]
"""Returns the validated data of all arguments; ``None`` where the serializer has to decide."""

# Permitted members of an author's class: fields, methods that run after validation or for output, and Python's own.
_ALLOWED = frozenset(
    {"_declared_fields", "Meta", "create", "update", "to_representation"}
    | {"__module__", "__qualname__", "__doc__", "__annotations__", "__annotate_func__", "__annotations_cache__"}
    | {"__firstlineno__", "__static_attributes__", "__classdictcell__"}
)
_BASES = frozenset({object, Field, serializers.BaseSerializer, serializers.Serializer, serializers.ModelSerializer})
# An integer field converts a number to digits and back, and Python limits the number of digits.
_TOO_LARGE = 10**300
_WHOLE_FLOATS = 2**53
_PLAIN = (bool, int, float, str, type(None))
_REFUSED, _SKIPPED = object(), object()


class _FieldEntry(NamedTuple):
    name: str
    key: str
    """Key in the validated data."""
    check: Check
    may_be_none: bool
    absent: Any
    """Value of an argument that wasn't sent. ``_SKIPPED`` leaves the key out; ``_REFUSED`` means that the serializer
    has to decide."""


def compile_reader(serializer: type[Any], *, partial: bool) -> Read | None:
    """The reader that is equivalent to an instance; ``None`` where the class can't be compiled."""
    if not all(kind in _BASES or kind.__dict__.keys() <= _ALLOWED for kind in serializer.__mro__):
        return None
    if type(serializers.Serializer().to_internal_value({})) is not dict:
        # This release of REST framework returns another kind of mapping, which only the serializer makes.
        return None
    made = serializer(data={}, partial=partial)
    fields: list[Field] = list(made.fields.values())
    if made.validators or any(field.read_only and field.default is not empty for field in fields):
        return None
    entries: list[_FieldEntry] = []
    for field in fields:
        if field.read_only:
            continue
        check = _compile_check(field)
        # Only an immutable default can be shared between calls.
        is_made_anew = not partial and field.default is not empty and type(field.default) not in _PLAIN
        if check is None or is_made_anew or field.source == "*" or "." in field.source:
            return None
        entries.append(
            _FieldEntry(field.field_name, field.source, check, field.allow_null, _absent_value(field, partial))
        )
    return _make_reader(tuple(entries))


def _make_reader(entries: tuple[_FieldEntry, ...]) -> Read:
    def read(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        data = {}
        for name, key, check, may_be_none, absent in entries:
            if name in arguments:
                value = arguments[name]
                valid = check(value)
                if valid is None and not (value is None and may_be_none):
                    return None
                data[key] = valid
            elif absent is _REFUSED:
                return None
            elif absent is not _SKIPPED:
                data[key] = absent
        return data

    return read


def _absent_value(field: Field, partial: bool) -> Any:
    if partial:
        return _SKIPPED
    if field.required:
        return _REFUSED
    return _SKIPPED if field.default is empty else field.default


def _compile_check(field: Field) -> Check | None:
    """The check of one field; ``None`` where the field isn't exactly of a known type with known validators."""
    make = _CHECKS.get(type(field))
    if make is not None:
        return make(field)
    return _check_by_field(field) if type(field) in _CHECKED_BY_FIELD else None


def _limits(field: Field, kinds: Mapping[type[Any], str], unlimited: dict[str, Any]) -> dict[str, Any] | None:
    """The least and the greatest value that the field's validators accept; ``None`` where it has other validators."""
    found = dict(unlimited)
    for validator in field.validators:
        kind = type(validator)
        if kind in _OF_TEXT:
            continue
        if kind not in kinds or type(validator.limit_value) not in (int, float):
            return None
        which, limit = kinds[kind], validator.limit_value
        found[which] = max(found[which], limit) if which == "least" else min(found[which], limit)
    return found


_OF_NUMBERS = {validators.MinValueValidator: "least", validators.MaxValueValidator: "most"}
_OF_LENGTHS = {validators.MinLengthValidator: "least", validators.MaxLengthValidator: "most"}
# `_text` leaves every value that these validators refuse to the field.
_OF_TEXT = frozenset(
    {validators.ProhibitNullCharactersValidator, getattr(rest_validators, "ProhibitSurrogateCharactersValidator", None)}
)


def _whole(field: Field) -> Check | None:
    limits = _limits(field, _OF_NUMBERS, {"least": 1 - _TOO_LARGE, "most": _TOO_LARGE - 1})
    if limits is None:
        return None
    least, most = limits["least"], limits["most"]

    def check(value: Any) -> Any:
        return value if type(value) is int and least <= value <= most else None

    return check


def _number(field: Field) -> Check | None:
    limits = _limits(field, _OF_NUMBERS, {"least": float("-inf"), "most": float("inf")})
    if limits is None:
        return None
    least, most = limits["least"], limits["most"]

    def check(value: Any) -> Any:
        if type(value) is int and -_WHOLE_FLOATS <= value <= _WHOLE_FLOATS:
            value = float(value)
        return value if type(value) is float and isfinite(value) and least <= value <= most else None

    return check


def _text(field: Field) -> Check | None:
    limits = _limits(field, _OF_LENGTHS, {"least": 1, "most": float("inf")})
    if limits is None:
        return None
    least, most, is_trimmed = limits["least"], limits["most"], field.trim_whitespace

    def check(value: Any) -> Any:
        if type(value) is not str or "\0" in value or not (value.isascii() or _is_text(value)):
            return None
        if is_trimmed:
            value = value.strip()
        return value if least <= len(value) <= most else None

    return check


def _is_text(value: str) -> bool:
    """Whether the string has no lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _truth(field: Field) -> Check | None:
    return _itself if not field.validators else None


def _itself(value: Any) -> Any:
    return value if type(value) is bool else None


def is_settled(field: Field) -> bool:
    """Whether a field's choices, if it has any, are the same at each construction.

    Choices of any other iterable type may differ each time, such as a model's choices that are a function.
    """
    if not isinstance(field, serializers.ChoiceField):
        return True
    given = field._kwargs["choices"] if "choices" in field._kwargs else next(iter(field._args), None)
    # An author's subclass of a list may iterate in its own way.
    return type(given) in (list, tuple, dict) or (isinstance(given, type) and issubclass(given, Enum))


def _check_by_field(field: Field) -> Check | None:
    """A check by the field itself, for fields that keep no state and don't look at the call."""
    if not is_settled(field):
        return None
    for validator in field.validators:
        if type(validator) not in _KNOWN_VALIDATORS or callable(getattr(validator, "limit_value", None)):
            return None

    def check(value: Any) -> Any:
        try:
            return field.run_validation(value)
        except Exception:
            # The serializer reports this error together with those of other fields.
            return None

    return check


_CHECKED_BY_FIELD = frozenset(
    {serializers.EmailField, serializers.SlugField, serializers.URLField, serializers.RegexField}
    | {serializers.UUIDField, serializers.DecimalField, serializers.ChoiceField}
    | {serializers.DateField, serializers.TimeField, serializers.DateTimeField, serializers.DurationField}
)
_KNOWN_VALIDATORS = frozenset(
    {*_OF_NUMBERS, *_OF_LENGTHS, *_OF_TEXT}
    | {validators.RegexValidator, validators.EmailValidator, validators.URLValidator, validators.DecimalValidator}
)
_CHECKS: Mapping[type[Field], Callable[[Field], Check | None]] = {
    serializers.IntegerField: _whole,
    serializers.FloatField: _number,
    serializers.CharField: _text,
    serializers.BooleanField: _truth,
}
