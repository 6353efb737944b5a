"""A serializer of plain fields, compiled: its validated data without its running.

REST framework's serializers look at each field's options, validators and hooks anew for each call. Where a class is
nothing but a list of numbers, texts, dates, choices and the like, what it would make of a value that surely fits is
known before, or told by the field alone. Any other value, also one that it would convert (``"21"`` for a number), is
the serializer's own, which has the last word, and all the words.

Design constraint: what runs no code of an author's may be left out, and nothing else. A class with anything of its own
but fields and what is called after validation isn't compiled, nor is one with a field that could look at the call.
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
"""The validated value; ``None`` where the serializer has to look."""
Read = Callable[[Mapping[str, Any]], dict[str, Any] | None]
"""The same of all arguments."""

# What a class of an author's may have: fields, what is called once data is valid or is shown, what Python puts there.
_ALLOWED = frozenset(
    {"_declared_fields", "Meta", "create", "update", "to_representation"}
    | {"__module__", "__qualname__", "__doc__", "__annotations__", "__annotate_func__", "__annotations_cache__"}
    | {"__firstlineno__", "__static_attributes__", "__classdictcell__"}
)
_BASES = frozenset({object, Field, serializers.BaseSerializer, serializers.Serializer, serializers.ModelSerializer})
# The field writes a number as digits and reads those, which Python refuses to do with very many.
_TOO_LARGE = 10**300
_WHOLE_FLOATS = 2**53
_PLAIN = (bool, int, float, str, type(None))
_REFUSED, _SKIPPED = object(), object()


class _Entry(NamedTuple):
    name: str
    key: str
    """In validated data."""
    check: Check
    may_be_none: bool
    absent: Any
    """What is taken where nothing was sent: ``_SKIPPED``, nothing; ``_REFUSED``, the serializer has to look."""


def compiled(serializer: type[Any], *, partial: bool) -> Read | None:
    """What reads arguments as an instance would; ``None`` where only an instance can."""
    if not all(kind in _BASES or kind.__dict__.keys() <= _ALLOWED for kind in serializer.__mro__):
        return None
    if type(serializers.Serializer().to_internal_value({})) is not dict:
        # Releases that give another mapping have that from the serializer.
        return None
    made = serializer(data={}, partial=partial)
    fields: list[Field] = list(made.fields.values())
    if made.validators or any(field.read_only and field.default is not empty for field in fields):
        return None
    entries: list[_Entry] = []
    for field in fields:
        if field.read_only:
            continue
        check = _check(field)
        # Only these are sure to be what the next call needs, too.
        is_made_anew = not partial and field.default is not empty and type(field.default) not in _PLAIN
        if check is None or is_made_anew or field.source == "*" or "." in field.source:
            return None
        entries.append(_Entry(field.field_name, field.source, check, field.allow_null, _absent(field, partial)))
    return _reader(tuple(entries))


def _reader(entries: tuple[_Entry, ...]) -> Read:
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


def _absent(field: Field, partial: bool) -> Any:
    if partial:
        return _SKIPPED
    if field.required:
        return _REFUSED
    return _SKIPPED if field.default is empty else field.default


def _check(field: Field) -> Check | None:
    """Of one field; ``None`` where it isn't exactly one of those that are known, with none but their validators."""
    make = _CHECKS.get(type(field))
    if make is not None:
        return make(field)
    return _asked(field) if type(field) in _ASKED else None


def _limits(field: Field, kinds: Mapping[type[Any], str], unlimited: dict[str, Any]) -> dict[str, Any] | None:
    """The least and the most that the field's validators let pass; ``None`` where there are others."""
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
# What these refuse, `_text` leaves to the field.
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
    """Whether it has no lone surrogates."""
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
    """Whether a field's choices, if it has any, are the same each time that it is made.

    Whatever else can be looked through may say something new each time: a model's, where they are a function.
    """
    if not isinstance(field, serializers.ChoiceField):
        return True
    given = field._kwargs["choices"] if "choices" in field._kwargs else next(iter(field._args), None)
    # A kind of list of an author's own may be looked through in a way of its own.
    return type(given) in (list, tuple, dict) or (isinstance(given, type) and issubclass(given, Enum))


def _asked(field: Field) -> Check | None:
    """What the field makes of it: nothing that it looks at is of a call, and it keeps nothing."""
    if not is_settled(field):
        return None
    for validator in field.validators:
        if type(validator) not in _KNOWN or callable(getattr(validator, "limit_value", None)):
            return None

    def check(value: Any) -> Any:
        try:
            return field.run_validation(value)
        except Exception:
            # The serializer says what is wrong, beside all else that is.
            return None

    return check


_ASKED = frozenset(
    {serializers.EmailField, serializers.SlugField, serializers.URLField, serializers.RegexField}
    | {serializers.UUIDField, serializers.DecimalField, serializers.ChoiceField}
    | {serializers.DateField, serializers.TimeField, serializers.DateTimeField, serializers.DurationField}
)
_KNOWN = frozenset(
    {*_OF_NUMBERS, *_OF_LENGTHS, *_OF_TEXT}
    | {validators.RegexValidator, validators.EmailValidator, validators.URLValidator, validators.DecimalValidator}
)
_CHECKS: Mapping[type[Field], Callable[[Field], Check | None]] = {
    serializers.IntegerField: _whole,
    serializers.FloatField: _number,
    serializers.CharField: _text,
    serializers.BooleanField: _truth,
}
