"""The base of every part of a Run."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

LARGEST = 10**18
"""Of a figure, either way: what is made of a few of them is still a number."""

Whole = Annotated[int, Field(ge=0, le=LARGEST)]
"""A count, bytes, nanoseconds."""
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
"""Seconds, a ratio, a rate."""


def _bounded(facts: dict[str, Any]) -> dict[str, Any]:
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


Facts = Annotated[dict[str, Any], AfterValidator(_bounded)]
"""What only its own reader knows the members of."""


class Model(BaseModel):
    """Data only. Readers ignore members that they don't know, so that a run of a later minor release still loads."""

    model_config = ConfigDict(populate_by_name=True, extra="ignore", allow_inf_nan=False)
