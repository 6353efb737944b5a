"""The JSON Schemas of what a spec takes and gives: djangorestframework-services', with what may be nothing said.

Clients check results by the schema that they were told, and drop one that doesn't fit: a field that may be ``null``, or
a choice that may be blank, has to say so.

Design constraint: worked out once, at registration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework_services import ServiceSpec, spec_to_json_schema

Schema = dict[str, Any]


def input_schema(spec: Any, **options: Any) -> Schema:
    """Of a spec's arguments."""
    schema = spec_to_json_schema(spec, phase="input", **options) or {}
    kind = getattr(spec, "input_serializer", None)
    if not (isinstance(kind, type) and issubclass(kind, serializers.Serializer)) or spec.many:
        return schema
    serializer = kind()
    hidden = {name for name, field in serializer.fields.items() if isinstance(field, serializers.HiddenField)}
    return _without(_of_serializer(schema, serializer), hidden)


def output_schema(spec: Any) -> Schema | None:
    """Of what a spec gives: of one, or an array's; ``None`` where it doesn't say."""
    schema = spec_to_json_schema(spec, phase="output")
    shown = spec.output_selector_spec if isinstance(spec, ServiceSpec) else spec
    kind = getattr(shown, "output_serializer", None)
    if schema is None or kind is None:
        return schema
    if schema.get("type") == "array":
        return {**schema, "items": with_nulls(schema.get("items", {}), kind)}
    return with_nulls(schema, kind)


def of_object(schema: Schema | None, *, can_be_empty: bool) -> Schema | None:
    """A result's schema, where it is an object's. One that may be nothing is ``{}``, and needs no field."""
    if schema is None or schema.get("type") != "object" or not schema.get("properties"):
        return None
    return {key: value for key, value in schema.items() if key != "required"} if can_be_empty else schema


def of_list(item: Mapping[str, Any], *, paginate: bool) -> Schema:
    """Of a list's result."""
    properties: Schema = {"items": {"type": "array", "items": item}}
    if paginate:
        properties |= {"page": {"type": "integer"}, "totalPages": {"type": "integer"}, "hasNext": {"type": "boolean"}}
    return {"type": "object", "properties": properties, "required": list(properties)}


def with_nulls(schema: Schema, kind: Any) -> Schema:
    """The same, where each field of a serializer that may be nothing says so."""
    if not (isinstance(kind, type) and issubclass(kind, serializers.Serializer)):
        return schema
    return _of_serializer(schema, kind())


def _without(schema: Schema, names: set[str]) -> Schema:
    """Fields that the server fills in are none of a caller's."""
    if not names:
        return schema
    properties = {name: one for name, one in schema.get("properties", {}).items() if name not in names}
    required = [name for name in schema.get("required", ()) if name not in names]
    rest = {key: value for key, value in schema.items() if key not in ("properties", "required")}
    return {**rest, "properties": properties, **({"required": required} if required else {})}


def _of_serializer(schema: Schema, serializer: Any) -> Schema:
    properties = dict(schema.get("properties", {}))
    for name, field in serializer.fields.items():
        if name in properties:
            properties[name] = _of_field(properties[name], field)
    return {**schema, "properties": properties} if properties else schema


def _of_field(schema: Schema, field: Any) -> Schema:
    if isinstance(field, serializers.ListSerializer):
        inner = schema.get("items")
        found = {**schema, "items": _of_field(inner, field.child)} if isinstance(inner, dict) else schema
    elif isinstance(field, serializers.Serializer):
        found = _of_serializer(schema, field)
    elif isinstance(field, serializers.ChoiceField) and field.allow_blank and schema:
        found = {"anyOf": [schema, {"const": ""}]}
    else:
        found = schema
    return _nullable(found) if field.allow_null else found


def _nullable(schema: Schema) -> Schema:
    kind = schema.get("type")
    if not schema or schema == {"type": "null"} or (isinstance(kind, list) and "null" in kind):
        return schema
    if isinstance(kind, str) and not schema.keys() & {"enum", "const", "oneOf", "anyOf", "allOf", "$ref"}:
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}
