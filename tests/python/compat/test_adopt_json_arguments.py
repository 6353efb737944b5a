"""The fast path from a call's bytes to keyword arguments gives the result of the general path wherever it is used."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic_core import from_json

from mcpace.server.adopt.json_arguments import model_reader, reads_alike
from support.fast_path import assert_parity


class Inner(BaseModel):
    number: int
    text: str = "x"


class Lenient(BaseModel):
    model_config = ConfigDict(strict=True)
    number: int


class Colour(Enum):
    RED = "red"


ALIKE: list[Any] = [
    str,
    int,
    float,
    bool,
    int | None,
    str | None,
    list[int],
    dict[str, float],
    list[dict[str, int | None]],
    int | str,
    float | bool,
    Literal["a", "b", 3],
    Annotated[int, Field(ge=0, le=10)],
    Annotated[str, Field(min_length=1, max_length=3)],
    Inner,
    list[Inner],
    Inner | None,
]
UNLIKE: list[Any] = [
    date,
    Decimal,
    Colour,
    bytes,
    tuple[int, str],
    set[int],
    date | str,
    Inner | dict[str, int],
    dict[int, str],
    Any,
    Lenient,
]

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.sampled_from(["1", "1.5", "true", "null", "[1]", '{"number": 1}', "a", "2026-01-02"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["number", "text", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def model_of(kind: Any) -> type[BaseModel]:
    return create_model("Arguments", value=(kind, ...), other=(int, 7))


def plainly(model: type[BaseModel], raw: bytes) -> dict[str, Any]:
    """The official SDK's conversion: JSON in a string is parsed first, unless the parameter is a `str`."""
    arguments = dict(from_json(raw))
    for name, value in arguments.items():
        field = model.model_fields.get(name)
        if field is None or not isinstance(value, str) or field.annotation is str:
            continue
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            continue
        if not isinstance(parsed, str | int | float):
            arguments[name] = parsed
    instance = model.model_validate(arguments)
    return {name: getattr(instance, name) for name in model.model_fields}


@pytest.mark.parametrize("kind", ALIKE, ids=str)
@given(value=values)
def test_fast_path_of_adopted_arguments_equals_the_sdk(kind: Any, value: Any) -> None:
    model = model_of(kind)
    assert reads_alike(model.__pydantic_core_schema__)

    def general(raw: bytes) -> dict[str, Any]:
        return plainly(model, raw)

    given = ({"value": value}, {"value": value, "other": "3", "more": 1}, {})
    assert_parity(model_reader(model, general), general, [json.dumps(arguments).encode() for arguments in given])


@pytest.mark.parametrize("kind", UNLIKE, ids=str)
def test_types_that_are_read_differently_take_the_general_path(kind: Any) -> None:
    model = model_of(kind)

    def general(raw: bytes) -> dict[str, Any]:
        return plainly(model, raw)

    validate = model_reader(model, general)
    assert not reads_alike(model.__pydantic_core_schema__)
    assert validate is general


def test_plain_types_take_the_fast_path() -> None:
    def never(raw: bytes) -> dict[str, Any]:
        raise AssertionError("the general path was taken")

    model = create_model("Arguments", text=(str, ...), number=(int, 1), maybe=(str | None, None))
    validate = model_reader(model, never)
    assert validate(b'{"text": "[1]"}') == {"text": "[1]", "number": 1, "maybe": None}
    assert validate(b'{"text": "a", "number": "5", "maybe": "word"}') == {"text": "a", "number": 5, "maybe": "word"}
    # A string that might be JSON is left to the SDK.
    with pytest.raises(AssertionError):
        validate(b'{"text": "a", "maybe": "null"}')
