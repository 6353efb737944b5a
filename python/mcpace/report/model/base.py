"""The base class and the bounded number types of every part of a Run."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import VERSION, AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

LARGEST = 10**18
"""Largest absolute value of a figure. Sums and products of a few such figures are still finite numbers."""

Whole = Annotated[int, Field(ge=0, le=LARGEST)]
"""A count, bytes, nanoseconds."""
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
"""Seconds, a ratio, a rate."""


def _check_bounds(facts: dict[str, Any]) -> dict[str, Any]:
    within: list[Any] = [facts]
    while within:
        match within.pop():
            case dict() as inner:
                within.extend(inner.values())
            case list() as inner:
                within.extend(inner)
            case int() | float() as number if not -LARGEST <= number <= LARGEST:
                raise ValueError("a number that is larger than any that was measured")
    return facts


Facts = Annotated[dict[str, Any], AfterValidator(_check_bounds)]
"""A dictionary whose members only its own reader knows."""


def _fail_fast(schema: Any) -> None:
    within: list[Any] = [schema]
    while within:
        match within.pop():
            case dict() as inner:
                if inner is not schema and inner.get("type") == "model":
                    continue  # set when its class was created
                if inner.get("type") in ("list", "tuple", "set", "frozenset"):
                    inner["fail_fast"] = True
                within.extend(inner.values())
            case list() as inner:
                within.extend(inner)


BUILDS_IN_ANY_THREAD = tuple(int(part) for part in VERSION.split(".")[:2]) >= (2, 14)
"""Whether two threads may use a model that is not built yet. Earlier versions of pydantic have no lock there."""


class Model(BaseModel):
    """Data only. Readers ignore members that they don't know, so that a run of a later minor release still loads.

    Lists are read up to their first mistake: pydantic keeps an error of several hundred bytes for each one.
    """

    model_config = ConfigDict(
        populate_by_name=True, extra="ignore", allow_inf_nan=False, defer_build=BUILDS_IN_ANY_THREAD
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _fail_fast(schema)
        return schema
