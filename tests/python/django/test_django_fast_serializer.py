"""Compiled readers of plain serializers: the classes that are compiled, and the equality of the validated data."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from support import django_project  # noqa: F401 - sets Django up

# isort: split
import django
from django.contrib.auth.models import User
from django.core.validators import MaxValueValidator, ProhibitNullCharactersValidator, RegexValidator
from django.db import models
from django.test.utils import isolate_apps
from rest_framework import serializers

from invoices.models import Customer, Invoice
from invoices.serializers import InvoiceOutput
from mcpace.django.argument_validation import Kept, Reader
from mcpace.django.fast_serializer import compile_reader
from support.fast_path import Declined, assert_parity

HUGE = 10**5000
VALUES: list[Any] = [
    *(
        0,
        1,
        -1,
        5,
        21,
        2**63,
        10**299,
        10**300,
        HUGE,
        -HUGE,
        True,
        False,
        None,
        1.0,
        1.5,
        -0.0,
        float("nan"),
        float("inf"),
    ),
    *("", " ", "a", " a ", "ab", "abcdef", "21", " 21", "1.0", "true", "null", "é", " é ", "\ud800", "a\0", "a\n"),
    *("2026-01-02", "2026-02-30", "02.01.2026", "2026-01-02T03:04:05Z", "2026-01-02T03:04", "03:04", "1 00:00:01"),
    *("ada@shop.example", "https://shop.example/", "2b1bd1f8-0c4b-4f0b-9f3a-3b1a3f1c9d11", 2**60, "12.34", "12.345"),
    *([], [1], {}, {"a": 1}, type("Text", (str,), {})("a"), type("Number", (int,), {})(5)),
]


def of(**fields: Any) -> type[serializers.Serializer]:
    """A serializer class with these fields."""
    return type("Made", (serializers.Serializer,), fields)


PLAIN: list[Callable[[], Any]] = [
    serializers.IntegerField,
    lambda: serializers.IntegerField(min_value=0, max_value=20),
    lambda: serializers.IntegerField(min_value=0.5, validators=[MaxValueValidator(5)]),
    lambda: serializers.IntegerField(allow_null=True),
    lambda: serializers.IntegerField(required=False),
    lambda: serializers.IntegerField(default=7, min_value=10),
    lambda: serializers.IntegerField(default=None, allow_null=True),
    lambda: serializers.IntegerField(source="other"),
    serializers.FloatField,
    lambda: serializers.FloatField(min_value=0, max_value=1.25),
    serializers.CharField,
    lambda: serializers.CharField(allow_blank=True),
    lambda: serializers.CharField(trim_whitespace=False),
    lambda: serializers.CharField(trim_whitespace=False, allow_blank=True, allow_null=True),
    lambda: serializers.CharField(min_length=2, max_length=3),
    lambda: serializers.CharField(min_length=0, allow_blank=True),
    lambda: serializers.CharField(default=" x "),
    serializers.EmailField,
    serializers.SlugField,
    lambda: serializers.URLField(allow_blank=True),
    lambda: serializers.RegexField("^a"),
    lambda: serializers.UUIDField(allow_null=True),
    lambda: serializers.DecimalField(max_digits=4, decimal_places=2, min_value=0),
    lambda: serializers.ChoiceField([("a", "A"), (21, "one")]),
    lambda: serializers.ChoiceField(["a"], allow_blank=True, allow_null=True),
    serializers.DateField,
    lambda: serializers.DateField(input_formats=["%d.%m.%Y"]),
    serializers.TimeField,
    serializers.DateTimeField,
    serializers.DurationField,
    serializers.BooleanField,
    lambda: serializers.BooleanField(allow_null=True),
    lambda: serializers.BooleanField(default=False),
]


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("make", PLAIN)
def test_fast_path_of_a_serializer_equals_the_serializer(make: Callable[[], Any], partial: bool) -> None:
    kind = of(n=make(), m=serializers.BooleanField(required=False))
    read = compile_reader(kind, partial=partial)
    assert read is not None

    def fast(arguments: dict[str, Any]) -> dict[str, Any]:
        data = read(arguments)
        if data is None:
            raise Declined
        return data

    def general(arguments: dict[str, Any]) -> Any:
        serializer = kind(data=arguments, partial=partial)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data

    given = [{}, *({"n": value} for value in VALUES), {"n": 1, "m": True, "x": 2}, {"m": 1}, {"m": False}]
    assert assert_parity(fast, general, given) >= 1


def test_the_usual_values_need_no_serializer() -> None:
    read = compile_reader(
        of(
            n=serializers.IntegerField(),
            x=serializers.FloatField(),
            s=serializers.CharField(max_length=80),
            b=serializers.BooleanField(required=False),
        ),
        partial=False,
    )
    assert read is not None
    assert read({"n": 21, "x": 0.5, "s": "é "}) == {"n": 21, "x": 0.5, "s": "é"}
    assert read({"n": 21, "x": 0.5, "s": "é", "b": True}) == {"n": 21, "x": 0.5, "s": "é", "b": True}
    for wrong in ({"n": "21", "x": 0.5, "s": "a"}, {"n": 21, "s": "a"}, {"n": 21, "x": 0.5, "s": ""}):
        assert read(wrong) is None


class Deciding(serializers.IntegerField):
    """An author's."""


class Even(RegexValidator):
    """An author's."""


def doubled(value: int) -> int:
    return 2 * value


class Validates(serializers.Serializer):
    n = serializers.IntegerField()

    def validate(self, attrs: Any) -> Any:
        return {"n": attrs["n"] + 1}


class ValidatesField(serializers.Serializer):
    n = serializers.IntegerField()

    def validate_n(self, value: int) -> int:
        return value + 1


class Mixin:
    def run_validation(self, data: Any = None) -> Any:
        return {"n": 3}


class Mixed(Mixin, serializers.Serializer):
    n = serializers.IntegerField()


class Converts(serializers.Serializer):
    n = serializers.IntegerField()

    def to_internal_value(self, data: Any) -> Any:
        return {"n": 4}


class Derived(Validates):
    pass


class MetaValidators(serializers.Serializer):
    n = serializers.IntegerField()

    class Meta:
        validators = (lambda attrs: None,)


class GetsFields(serializers.Serializer):
    def get_fields(self) -> Any:
        return {"n": serializers.IntegerField()}


NOT_PLAIN: list[Any] = [
    *(Validates, ValidatesField, Mixed, Converts, Derived, MetaValidators, GetsFields, InvoiceOutput),
    *(
        of(n=field)
        for field in (
            Deciding(),
            serializers.IntegerField(validators=[lambda value: None]),
            serializers.IntegerField(validators=[MaxValueValidator(lambda: 5)]),
            serializers.CharField(validators=[Even("a")]),
            serializers.IntegerField(default=lambda: 5),
            serializers.IntegerField(default=serializers.CurrentUserDefault()),
            serializers.IntegerField(default=[]),
            serializers.IntegerField(source="*"),
            serializers.IntegerField(source="a.b"),
            serializers.IntegerField(read_only=True, default=5),
            serializers.HiddenField(default=5),
            serializers.ListField(child=serializers.IntegerField()),
            of(n=serializers.IntegerField())(),
            serializers.EmailField(validators=[Even("a")]),
            serializers.DateField(validators=[MaxValueValidator(lambda: None)]),
            serializers.DateTimeField(default=datetime.now),
            serializers.ModelField(User._meta.get_field("username")),
            serializers.PrimaryKeyRelatedField(queryset=User.objects.all()),
            serializers.JSONField(),
            serializers.MultipleChoiceField(choices=["a"]),
        )
    ),
]


@pytest.mark.parametrize("kind", NOT_PLAIN)
def test_what_has_anything_of_its_own_is_not_compiled(kind: Any) -> None:
    assert Reader(kind).fast_path is None


def test_what_is_only_shown_or_done_after_does_not_matter() -> None:
    class Saves(serializers.Serializer):
        """Words."""

        n = serializers.IntegerField(help_text="how many", label="N", validators=[])
        shown = serializers.DateField(read_only=True)

        class Meta:
            ref_name = "Saves"

        def create(self, validated_data: Any) -> Any:
            return validated_data

    read = Reader(Saves).fast_path
    assert read is not None and read({"n": 1, "shown": "2026-01-01"}) == {"n": 1}


def test_a_field_that_sends_nothing_of_its_own_keeps_its_place() -> None:
    kinds = {name: serializers.IntegerField(required=False) for name in "abc"}
    read = compile_reader(of(**kinds), partial=False)
    assert read is not None
    for names in itertools.permutations("abc"):
        assert list(read(dict.fromkeys(names, 1)) or ()) == list("abc")


def test_text_that_a_number_never_has_may_be_prohibited() -> None:
    assert compile_reader(of(n=serializers.IntegerField(validators=[ProhibitNullCharactersValidator()])), partial=False)


def test_who_wants_a_kept_call_still_gets_what_was_refused_from_the_serializer() -> None:
    reader = Reader(of(n=serializers.IntegerField(min_value=0)))
    call: Any = type("Call", (), {"context": lambda self: {}})()
    assert reader.read({"n": "21"}, call) == {"n": 21}
    with pytest.raises(serializers.ValidationError, match="greater than or equal to 0"):
        reader.read({"n": -1}, call)


# Properties that are decided at each construction of a serializer ----------------------------------------------------

CALL: Any = type("Call", (), {"context": lambda self: {}})()


class Lazily:
    """Choices that are computed at each iteration."""

    def __init__(self) -> None:
        self.now = ["old", "kept"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.now)

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class LazyList(list[str]):
    """An author's."""

    now = ("old", "kept")

    def __iter__(self) -> Iterator[str]:
        return iter(self.now)


def model_of(name: str, **fields: Any) -> type[models.Model]:
    """A model without a table, for this test only."""
    meta = type("Meta", (), {"app_label": "invoices"})
    with isolate_apps("invoices"):
        return type(name, (models.Model,), {"__module__": __name__, "Meta": meta, **fields})


def serializer_of(model: type[models.Model], *names: str) -> type[serializers.ModelSerializer]:
    meta = type("Meta", (), {"model": model, "fields": names})
    return type("Made", (serializers.ModelSerializer,), {"Meta": meta})


def follows(reader: Reader, change: Callable[[], None], value: Callable[[str], Any]) -> None:
    """A choice that was removed after registration is refused, one that was added is accepted."""
    assert list(reader.read({"n": value("old")}, CALL)["n"]) == list(value("old"))
    change()
    with pytest.raises(serializers.ValidationError, match="is not a valid"):
        reader.read({"n": value("old")}, CALL)
    for taken in ("kept", "new"):
        assert list(reader.read({"n": value(taken)}, CALL)["n"]) == list(value(taken))


@pytest.mark.skipif(django.VERSION < (5, 0), reason="a model's choices are no function")
@pytest.mark.parametrize("nested", [False, True])
def test_a_models_choices_are_those_that_its_function_gives_now(nested: bool) -> None:
    now = ["old", "kept"]
    choices = models.CharField(max_length=9, choices=lambda: [(one, one.title()) for one in now])
    kind = serializer_of(model_of(f"Chosen{nested}", n=choices), "n")

    def change() -> None:
        now[:] = ["kept", "new"]

    if not nested:
        reader = Reader(kind)
        assert reader.fast_path is None and compile_reader(kind, partial=False) is None
        follows(reader, change, str)
        return
    within = Reader(of(rows=kind(many=True)))
    assert within.read({"rows": [{"n": "old"}]}, CALL) == {"rows": [{"n": "old"}]}
    change()
    with pytest.raises(serializers.ValidationError, match="is not a valid choice"):
        within.read({"rows": [{"n": "old"}]}, CALL)
    assert within.read({"rows": [{"n": "new"}]}, CALL) == {"rows": [{"n": "new"}]}


@pytest.mark.parametrize("kind", [serializers.ChoiceField, serializers.MultipleChoiceField])
@pytest.mark.parametrize("as_list", [False, True])
def test_a_fields_choices_are_those_that_its_author_gives_now(
    kind: type[serializers.ChoiceField], as_list: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazily: Any = LazyList() if as_list else Lazily()
    reader = Reader(of(n=kind(choices=lazily)))
    assert reader.fast_path is None

    def change() -> None:
        monkeypatch.setattr(LazyList if as_list else lazily, "now", ["kept", "new"])

    if kind is serializers.ChoiceField:
        assert compile_reader(of(n=serializers.ChoiceField(lazily)), partial=False) is None
        follows(reader, change, str)
    else:
        follows(reader, change, lambda text: [text])


def test_a_folders_files_are_those_that_it_has_now(tmp_path: Path) -> None:
    for name in ("old", "kept"):
        (tmp_path / name).touch()

    def change() -> None:
        (tmp_path / "old").unlink()
        (tmp_path / "new").touch()

    follows(Reader(of(n=serializers.FilePathField(str(tmp_path)))), change, lambda name: str(tmp_path / name))


def test_the_rows_that_a_relation_allows_are_those_that_its_function_gives_now() -> None:
    rows = {name: Customer.objects.create(name=f"limited {name}") for name in ("old", "kept", "new")}
    now = ["old", "kept"]

    def allowed() -> dict[str, Any]:
        return {"name__in": [f"limited {name}" for name in now]}

    relation = models.ForeignKey(Customer, models.CASCADE, related_name="+", limit_choices_to=allowed)
    reader = Reader(serializer_of(model_of("Limited", n=relation), "n"))
    try:
        assert reader.read({"n": rows["old"].pk}, CALL) == {"n": rows["old"]}
        now[:] = ["kept", "new"]
        with pytest.raises(serializers.ValidationError, match="does not exist"):
            reader.read({"n": rows["old"].pk}, CALL)
        assert reader.read({"n": rows["new"].pk}, CALL) == {"n": rows["new"]}
    finally:
        for row in rows.values():
            row.delete()


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    "choices", [["red"], ("red",), {"red": "Red"}, [("warm", [("red", "Red")])], Colour, Invoice.Status]
)
def test_choices_that_stay_are_compiled_and_kept(choices: Any) -> None:
    kind = of(n=serializers.ChoiceField(choices=choices))
    assert Kept(kind, reading=True).is_reused
    read = Reader(kind).fast_path
    assert read is not None
    value = "sent" if choices is Invoice.Status else "red"
    serializer = kind(data={"n": value})
    assert serializer.is_valid() and read({"n": value}) == serializer.validated_data
    assert read({"n": "blue"}) is None


def test_a_models_list_of_choices_is_compiled_and_a_plain_relation_kept() -> None:
    read = Reader(serializer_of(Invoice, "status")).fast_path
    assert read is not None and read({"status": "sent"}) == {"status": "sent"} and read({"status": "lost"}) is None
    assert Kept(serializer_of(Invoice, "customer", "status"), reading=True).is_reused
