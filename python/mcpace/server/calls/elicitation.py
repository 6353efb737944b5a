"""Asking the user: a form from a pydantic model, or a page to visit.

Design constraint: a form has simple fields only (text, numbers, booleans, choices), since clients must draw it. Other
fields are refused by name when the question is asked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema, to_json
from typing_extensions import TypeAliasType

from mcpace.server.calls.invocation import await_answer
from mcpace.server.sdk_compat.shared_types import shared
from mcpace.types import ElicitRequestFormParams, ElicitRequestURLParams, ElicitResult, wire

if TYPE_CHECKING:
    from mcpace.server.calls.context import Call

DataT = TypeVar("DataT", bound=BaseModel)


class AcceptedElicitation(BaseModel, Generic[DataT]):
    """The user filled the form in: ``data`` is the model."""

    model_config = ConfigDict(defer_build=True)

    action: Literal["accept"] = "accept"
    data: DataT


class DeclinedElicitation(BaseModel):
    """The user declined."""

    model_config = ConfigDict(defer_build=True)

    action: Literal["decline"] = "decline"


class CancelledElicitation(BaseModel):
    """The user closed the question."""

    model_config = ConfigDict(defer_build=True)

    action: Literal["cancel"] = "cancel"


class AcceptedUrlElicitation(BaseModel):
    """The user agreed to visit the page. Only the page knows whether the user finished there."""

    model_config = ConfigDict(defer_build=True)

    action: Literal["accept"] = "accept"


ElicitationResult = TypeAliasType(
    "ElicitationResult",
    AcceptedElicitation[DataT] | DeclinedElicitation | CancelledElicitation,
    type_params=(DataT,),
)
"""The user's reaction to a form."""

UrlElicitationResult = AcceptedUrlElicitation | DeclinedElicitation | CancelledElicitation
"""The user's reaction to the request to visit a page."""


async def elicit(call: Call, message: str, schema: type[DataT]) -> ElicitationResult[DataT]:
    """Shows the user a form. Raises ``ValueError`` if the answer does not fit the form."""
    params = ElicitRequestFormParams(message=message, requested_schema=form_of(schema))
    answer = ElicitResult.model_validate_json(await await_answer(call.elicit(to_json(wire(params)))))
    if answer.action == "decline":
        return shared(DeclinedElicitation())
    if answer.action == "cancel":
        return shared(CancelledElicitation())
    if answer.content is None:
        raise ValueError("Received an accepted elicitation with no content")
    try:
        return shared(AcceptedElicitation(data=schema.model_validate(answer.content)))
    except ValidationError as error:
        raise ValueError(
            "Received an accepted elicitation whose content does not match the requested schema"
        ) from error


async def elicit_url(call: Call, message: str, url: str, elicitation_id: str) -> UrlElicitationResult:
    """Asks the user to visit a page."""
    params = ElicitRequestURLParams(message=message, url=url, elicitation_id=elicitation_id)
    answer = ElicitResult.model_validate_json(await await_answer(call.elicit(to_json(wire(params)))))
    answers: dict[str, UrlElicitationResult] = {
        "accept": AcceptedUrlElicitation(),
        "decline": DeclinedElicitation(),
    }
    return shared(answers.get(answer.action, CancelledElicitation()))


def form_of(schema: type[BaseModel]) -> dict[str, Any]:
    """A form's schema. Raises ``TypeError`` for a field that no form can have."""
    form = schema.model_json_schema(schema_generator=_FormSchema)
    definitions = form.pop("$defs", {})
    for field, described in form.get("properties", {}).items():
        name = described.get("$ref", "").removeprefix("#/$defs/")
        if "enum" in definitions.get(name, {}):
            # The schema of an Enum is a reference, which forms can't have.
            del described["$ref"]
            described |= definitions[name] | described
        if not _is_simple(described):
            raise TypeError(
                f"Elicitation schema field {field!r} rendered as {json.dumps(described)}, which no form can have: use "
                "str, int, float, bool, a Literal or Enum of strings, or a list of those"
            )
    return form


class _FormSchema(GenerateJsonSchema):
    """Forms have no null: an optional field is one that isn't required."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        result = super().default_schema(schema)
        if result.get("default") is None:
            result.pop("default", None)
        return result


def _is_simple(field: dict[str, Any]) -> bool:
    """2025-11-25, schema: `PrimitiveSchemaDefinition`."""
    kind = field.get("type")
    if kind == "array":
        items = field.get("items", {})
        return _is_choice(items, "enum", "anyOf")
    if kind == "string":
        return "enum" not in field or all(isinstance(value, str) for value in field["enum"])
    return kind in ("boolean", "integer", "number")


def _is_choice(items: dict[str, Any], *keywords: str) -> bool:
    return any(isinstance(items.get(keyword), list) for keyword in keywords)
