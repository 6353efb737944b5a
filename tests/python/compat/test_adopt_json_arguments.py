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
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import from_json

from mcpace.server.adopt.json_arguments import model_reader, reads_alike


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
def test_both_ways_agree(kind: Any, value: Any) -> None:
    model = model_of(kind)
    assert reads_alike(model.__pydantic_core_schema__)
    validate = model_reader(model, lambda raw: plainly(model, raw))
    for arguments in ({"value": value}, {"value": value, "other": "3", "more": 1}, {}):
        raw = json.dumps(arguments).encode()
        try:
            expected = plainly(model, raw)
        except ValidationError as error:
            with pytest.raises(ValidationError) as refused:
                validate(raw)
            # The message is that of the general path.
            assert str(refused.value) == str(error)
        else:
            got = validate(raw)
            assert got == expected
            assert [type(one) for one in got.values()] == [type(one) for one in expected.values()]


@pytest.mark.parametrize("kind", UNLIKE, ids=str)
def test_types_that_are_read_differently_go_the_plain_way(kind: Any) -> None:
    model = model_of(kind)

    def slowly(raw: bytes) -> dict[str, Any]:
        return plainly(model, raw)

    validate = model_reader(model, slowly)
    assert not reads_alike(model.__pydantic_core_schema__)
    assert validate is slowly


def test_the_quick_way_is_taken() -> None:
    def never(raw: bytes) -> dict[str, Any]:
        raise AssertionError("the plain way was taken")

    model = create_model("Arguments", text=(str, ...), number=(int, 1), maybe=(str | None, None))
    validate = model_reader(model, never)
    assert validate(b'{"text": "[1]"}') == {"text": "[1]", "number": 1, "maybe": None}
    assert validate(b'{"text": "a", "number": "5", "maybe": "word"}') == {"text": "a", "number": 5, "maybe": "word"}
    # A string that might be JSON is left to the SDK.
    with pytest.raises(AssertionError):
        validate(b'{"text": "a", "maybe": "null"}')
