"""JSON Schemas of a spec's arguments and results: those of djangorestframework-services, made to allow ``null`` and
blank values.

Clients validate results against the announced schema and drop a result that doesn't match, so the schema must allow
``null`` for a nullable field and the empty string for a choice that may be blank.

Design constraint: a schema is built once, at registration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework_services import ServiceSpec, spec_to_json_schema

Schema = dict[str, Any]


def input_schema(spec: Any, **options: Any) -> Schema:
    """Schema of a spec's arguments."""
    schema = spec_to_json_schema(spec, phase="input", **options) or {}
    kind = getattr(spec, "input_serializer", None)
    if not (isinstance(kind, type) and issubclass(kind, serializers.Serializer)) or spec.many:
        return schema
    serializer = kind()
    hidden = {name for name, field in serializer.fields.items() if isinstance(field, serializers.HiddenField)}
    return _drop_fields(_schema_with_nulls(schema, serializer), hidden)


def output_schema(spec: Any) -> Schema | None:
    """Schema of a spec's result, an object or an array; ``None`` where the spec doesn't determine it."""
    schema = spec_to_json_schema(spec, phase="output")
    shown = spec.output_selector_spec if isinstance(spec, ServiceSpec) else spec
    kind = getattr(shown, "output_serializer", None)
    if schema is None or kind is None:
        return schema
    if schema.get("type") == "array":
        return {**schema, "items": allow_nulls(schema.get("items", {}), kind)}
    return allow_nulls(schema, kind)


def object_schema(schema: Schema | None, *, can_be_empty: bool) -> Schema | None:
    """Schema of a result that is an object; ``None`` for any other. An optional result may be ``{}``, so its schema
    requires no field."""
    if schema is None or schema.get("type") != "object" or not schema.get("properties"):
        return None
    return {key: value for key, value in schema.items() if key != "required"} if can_be_empty else schema


def list_schema(item: Mapping[str, Any], *, paginate: bool) -> Schema:
    """Schema of a list's result."""
    properties: Schema = {"items": {"type": "array", "items": item}}
    if paginate:
        properties |= {"page": {"type": "integer"}, "totalPages": {"type": "integer"}, "hasNext": {"type": "boolean"}}
    return {"type": "object", "properties": properties, "required": list(properties)}


def allow_nulls(schema: Schema, kind: Any) -> Schema:
    """A copy of a serializer's schema in which nullable fields allow ``null`` and optional choices the empty string."""
    if not (isinstance(kind, type) and issubclass(kind, serializers.Serializer)):
        return schema
    return _schema_with_nulls(schema, kind())


def _drop_fields(schema: Schema, names: set[str]) -> Schema:
    """A copy of a schema without the fields ``names``, which the server fills in."""
    if not names:
        return schema
    properties = {name: one for name, one in schema.get("properties", {}).items() if name not in names}
    required = [name for name in schema.get("required", ()) if name not in names]
    rest = {key: value for key, value in schema.items() if key not in ("properties", "required")}
    return {**rest, "properties": properties, **({"required": required} if required else {})}


def _schema_with_nulls(schema: Schema, serializer: Any) -> Schema:
    properties = dict(schema.get("properties", {}))
    for name, field in serializer.fields.items():
        if name in properties:
            properties[name] = _field_schema(properties[name], field)
    return {**schema, "properties": properties} if properties else schema


def _field_schema(schema: Schema, field: Any) -> Schema:
    if isinstance(field, serializers.ListSerializer):
        inner = schema.get("items")
        found = {**schema, "items": _field_schema(inner, field.child)} if isinstance(inner, dict) else schema
    elif isinstance(field, serializers.Serializer):
        found = _schema_with_nulls(schema, field)
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
