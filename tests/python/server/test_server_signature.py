"""A function's signature as a schema and as a reader of a call's bytes: the fast path agrees with the general one."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import re
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import ValidationError

from mcpace.server.errors import InvalidArguments, InvalidSignature
from mcpace.server.registration.signature import Arguments, arguments_of
from support.fast_path import Declined, assert_parity


class Colour(enum.Enum):
    RED = "red"
    NULL = "null"


class Point(BaseModel):
    x: int
    near: list[Point] = []


@dataclasses.dataclass
class Size:
    x: int


class Dated(BaseModel):
    x: datetime.date | str


def taking(annotation: Any, default: Any = ...) -> Arguments:
    def function(value): ...

    function.__annotations__["value"] = annotation
    if default is not ...:
        function.__defaults__ = (default,)
    return arguments_of(function)


def test_schema_is_of_an_object_with_descriptions_and_defaults() -> None:
    def tool(name: Annotated[str, Field(description="Who")], times: int = 2, loud: bool | None = None): ...

    assert arguments_of(tool).schema == {
        "type": "object",
        "title": "toolArguments",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "title": "Name", "description": "Who"},
            "times": {"type": "integer", "title": "Times", "default": 2},
            "loud": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None, "title": "Loud"},
        },
    }


def test_defaults_are_made_anew_for_each_call() -> None:
    def tool(tags: list[str] = Field(default_factory=list), fixed: list[int] = [1]): ...  # noqa: B006, B008

    arguments = arguments_of(tool)
    first, second = arguments.validate_json(b"{}"), arguments.validate_json(b"{}")
    first["tags"].append("x")
    first["fixed"].append(2)
    assert second == {"tags": [], "fixed": [1]}


def test_names_of_the_model_s_own_methods_are_parameters_like_others() -> None:
    def tool(copy: int, json: str, model_dump: bool): ...

    arguments = arguments_of(tool)
    raw = b'{"copy": 1, "json": "x", "model_dump": true}'
    assert arguments.validate_json(raw) == {"copy": 1, "json": "x", "model_dump": True}
    assert arguments.validate({"copy": "1", "json": "x", "model_dump": "false"})["model_dump"] is False


def test_an_alias_is_what_is_sent_and_the_parameter_what_is_called() -> None:
    def tool(value: Annotated[int, Field(alias="in")]): ...

    arguments = arguments_of(tool)
    assert list(arguments.schema["properties"]) == ["in"]
    assert arguments.validate_json(b'{"in": 3}') == {"value": 3}
    assert arguments.validate({"in": "3"}) == {"value": 3}


def test_a_refusal_names_the_field_and_says_what_the_sdk_says() -> None:
    def tool(a: int, b: str = ""): ...

    with pytest.raises(InvalidArguments) as refused:
        arguments_of(tool).validate_json(b'{"a": "x", "b": 5}')
    text = str(refused.value)
    assert text.startswith("2 validation errors for toolArguments\na\n  Input should be a valid integer")
    assert "\nb\n  Input should be a valid string [type=string_type, input_value=5, input_type=int]" in text


@pytest.mark.parametrize("raw", [b"[1]", b"5", b'"x"', b"null"])
def test_arguments_that_are_no_object_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidArguments, match="Field required"):
        taking(int).validate_json(raw)


def test_a_lone_surrogate_is_no_text() -> None:
    with pytest.raises(InvalidArguments, match=r"the arguments are no text: .* at line 1 column 18"):
        taking(str).validate_json(b'{"value": "\\ud800"}')


# The fast path -------------------------------------------------------------------------------------------------------

ANNOTATIONS: list[Any] = [
    int,
    float,
    str,
    bool,
    Any,
    bytes,
    None | int,
    None | str,
    int | str,
    str | list[int],
    list[int],
    list[str],
    set[int],
    tuple[int, str],
    dict[str, int],
    dict[int, str],
    Literal["a", "b"],
    Literal["null", "[1]"],
    Colour,
    Colour | None,
    Point,
    Point | None,
    datetime.date,
    datetime.datetime | str,
    datetime.date | str,
    datetime.date | datetime.datetime,
    datetime.date | None,
    list[datetime.date] | list[str],
    list[datetime.date | str],
    dict[str, bytes | str],
    bytes | str,
    int | bytes,
    decimal.Decimal | float,
    datetime.timedelta | str,
    frozenset[str] | list[str],
    set[int] | list[int] | str,
    pathlib.Path | str,
    Point | dict[str, int],
    Point | str | None,
    Size | dict[str, Any],
    Point | Dated,
    datetime.timedelta,
    uuid.UUID,
    uuid.UUID | str,
    decimal.Decimal,
    list[decimal.Decimal],
    pathlib.Path,
    Annotated[str, Field(min_length=2)],
    Annotated[int, BeforeValidator(lambda value: len(value) if isinstance(value, str | list) else value)],
]

TEXTS = [
    "",
    "x",
    "5",
    "1.5",
    "true",
    "null",
    " null",
    "[1]",
    '["a"]',
    "[1",
    '{"x": 1}',
    '"q"',
    "2024-01-02",
    "PT1H",
    "a",
    "red",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.sampled_from(TEXTS) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "near", "1"]), inner, max_size=3),
    max_leaves=5,
)


# Names without addresses, because pytest-xdist needs equal names of tests in all processes.
@pytest.mark.parametrize(
    "annotation", ANNOTATIONS, ids=lambda annotation: re.sub(" at 0x[0-9a-f]+", "", str(annotation))
)
@settings(max_examples=40, deadline=None)
@example(value=0.0)
@example(value=[1.0])
@given(value=VALUES)
def test_fast_path_of_arguments_equals_the_general_path(annotation: Any, value: Any) -> None:
    arguments = taking(annotation)
    raw = json.dumps({"value": value}).encode()

    def general(raw: bytes) -> dict[str, Any]:
        return arguments.validate(json.loads(raw))

    def fast(raw: bytes) -> dict[str, Any]:
        assert arguments.fast_path is not None
        try:
            return arguments.fast_path(raw)
        except ValidationError as error:
            raise Declined from error

    assert_parity(arguments.validate_json, general, [raw])
    if arguments.fast_path is not None:
        assert_parity(fast, general, [raw])


FAST = [int, str, float, bool, list[int], dict[str, int], Point, int | None, Literal["a"], set[int] | dict[str, int]]


@pytest.mark.parametrize("annotation", FAST)
def test_usual_types_have_a_fast_path(annotation: Any) -> None:
    assert taking(annotation).fast_path is not None


def test_text_that_could_be_json_is_looked_at() -> None:
    assert taking(str | None).validate_json(b'{"value": "null"}') == {"value": None}
    assert taking(str | None).validate_json(b'{"value": "x"}') == {"value": "x"}
    assert taking(Any).validate_json(b'{"value": "[1]"}') == {"value": [1]}
    # A parameter of type `str` gets the argument unchanged.
    assert taking(str).validate_json(b'{"value": "[1]"}') == {"value": "[1]"}


# Functions that can't be registered ----------------------------------------------------------------------------------


class Opaque:
    pass


THING = object()


def stars(*values: int): ...
def double_stars(**values: int): ...
def positional(value: int, /): ...
def underscore(_value: int): ...
def opaque(fine: int, value: Opaque): ...
def callback(value: Callable[[int], int]): ...
def unknown(value: Missing): ...  # type: ignore[name-defined]  # noqa: F821
def no_type(value: THING): ...  # type: ignore[valid-type]
def broken(value: int | 3): ...  # type: ignore[valid-type]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (stars, r"Parameter \*values of stars"),
        (double_stars, r"Parameter \*\*values of double_stars"),
        (positional, "Parameter value of positional is positional only"),
        (underscore, "Parameter _value of underscore cannot start with '_'"),
        (opaque, "Parameter value of opaque: Opaque has no JSON Schema"),
        (callback, "Parameter value of callback: .*Callable.* has no JSON Schema"),
        (unknown, "Unable to evaluate type annotations for callable 'unknown': name 'Missing' is not defined"),
        (no_type, "Parameter value of no_type: .* has no JSON Schema"),
        (broken, "Unable to read the signature of callable 'broken'"),
    ],
)
def test_what_can_t_be_registered_is_refused_by_name(function: Any, said: str) -> None:
    with pytest.raises(InvalidSignature, match=said):
        arguments_of(function)
