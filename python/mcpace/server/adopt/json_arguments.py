"""Conversion of argument bytes to keyword arguments with an SDK's own model, on a faster path if that is certain to
agree.

The SDKs parse a call's JSON to Python values and validate those. pydantic can validate the bytes at once, but reads
some types differently from JSON than from Python values. So the fast path is used for types that are read alike. If it
fails, or might have accepted more than the SDK, the SDK's own path decides and writes the message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Validate = Callable[[bytes], dict[str, Any]]

_SCALARS = frozenset({"str", "int", "float", "bool", "none"})
_DEPTH = 32


def reads_alike(schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None, depth: int = 0) -> bool:
    """Whether a core schema reads JSON text and the Python values of that JSON alike."""
    known = definitions or {}
    if depth > _DEPTH or schema.get("strict"):
        return False

    def inner(part: Any) -> bool:
        return part is None or reads_alike(part, known, depth + 1)

    match schema["type"]:
        case kind if kind in _SCALARS:
            return True
        case "literal":
            return all(isinstance(value, str | int) for value in schema["expected"])
        case "nullable" | "default":
            # A default factory gives the same value on both paths.
            return not schema.get("validate_default") and inner(schema["schema"])
        case "list":
            return inner(schema.get("items_schema"))
        case "dict":
            keys = schema.get("keys_schema")
            return (keys is None or keys["type"] == "str") and inner(schema.get("values_schema"))
        case "union":
            # Pydantic prefers the member that fits without conversion, which depends on the input form except for
            # scalars.
            members = [one[0] if isinstance(one, tuple) else one for one in schema["choices"]]
            return all(one["type"] in _SCALARS for one in members)
        case "definitions":
            shared = {one["ref"]: one for one in schema["definitions"]}
            return reads_alike(schema["schema"], {**known, **shared}, depth + 1)
        case "model":
            own = not schema.get("custom_init") and not schema.get("root_model") and not schema.get("post_init")
            return own and not (schema.get("config") or {}).get("strict") and inner(schema["schema"])
        case "model-fields" | "typed-dict":
            fields = schema["fields"].values()
            return all(inner(field["schema"]) for field in fields) and not schema.get("extras_schema")
        case "arguments":
            parts = schema["arguments_schema"]
            plain = all(part.get("mode", "positional_or_keyword") != "positional_only" for part in parts)
            return plain and not schema.get("var_args_schema") and all(inner(part["schema"]) for part in parts)
        case _:
            return False


_OPENS_JSON = frozenset("{[tfn \t\r\n")
"""First characters of JSON that is neither a string nor a number."""


def model_reader(model: Any, general_path: Validate) -> Validate:
    """The converter for the official SDK's argument models; ``general_path`` is the SDK's own conversion of the bytes.

    The SDK reads a string that holds JSON as that JSON first, for each parameter that isn't annotated as ``str``. If a
    parameter might accept the string itself, too, such strings take the slow path.
    """
    from pydantic_core import ValidationError

    schema = model.__pydantic_core_schema__
    renamed = any(field.alias and field.alias != name for name, field in model.model_fields.items())
    if renamed or not reads_alike(schema):
        return general_path
    doubtful = [name for name, field in model.model_fields.items() if field.annotation is not str]
    doubtful = [name for name in doubtful if takes_text(_field(schema, name))]
    validate = model.__pydantic_validator__.validate_json

    if not doubtful:

        def fast_path(raw: bytes) -> dict[str, Any]:
            try:
                members: dict[str, Any] = validate(raw).__dict__
            except ValidationError:
                return general_path(raw)
            return members

        return fast_path

    def carefully(raw: bytes) -> dict[str, Any]:
        try:
            members: dict[str, Any] = validate(raw).__dict__
        except ValidationError:
            return general_path(raw)
        for name in doubtful:
            value = members[name]
            if isinstance(value, str) and value[:1] in _OPENS_JSON and _is_json(value):
                return general_path(raw)
        return members

    return carefully


def takes_text(schema: Mapping[str, Any] | None) -> bool:
    """Whether a schema may accept a string unconverted."""
    if schema is None:
        return True
    match schema["type"]:
        case "int" | "float" | "bool" | "none" | "list" | "dict" | "model" | "typed-dict":
            return False
        case "nullable" | "default":
            return takes_text(schema["schema"])
        case "union":
            return any(takes_text(one[0] if isinstance(one, tuple) else one) for one in schema["choices"])
        case _:
            return True


def _field(schema: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    while schema["type"] in ("definitions", "model"):
        schema = schema["schema"]
    field = schema["fields"].get(name)
    return None if field is None else field["schema"]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
